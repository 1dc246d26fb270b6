package influxdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var (
	errTimeout = errors.New("the option timeout")
	errLarge   = fmt.Errorf(
		"the body is larger than the %d bytes that a string field may have, as it is sent", maxField,
	)
)

// answerError is the server's refusal of a request.
type answerError struct {
	status int
	text   string
}

func newAnswerError(answer *http.Response, body []byte) *answerError {
	e := &answerError{answer.StatusCode, strings.TrimSpace(string(body))}
	var object struct{ Error string }
	if json.Unmarshal(body, &object) == nil && object.Error != "" {
		e.text = object.Error
	}
	return e
}

// partial reports whether some points are stored; the server does not name them.
func (e *answerError) partial() bool { return strings.HasPrefix(e.text, "partial write") }

func (e *answerError) Error() string {
	text := fmt.Sprintf("%d %s: %s", e.status, http.StatusText(e.status), e.text)
	if e.partial() {
		text += " (the server has stored other points of this request)"
	}
	return text
}

// classify returns the kind of an error.
func classify(err error) driver.Kind {
	var answer *answerError
	switch {
	case errors.Is(err, errLarge):
		return driver.Rejected
	case !errors.As(err, &answer):
		return driver.Unknown
	case answer.partial():
		return driver.Rejected
	}
	switch answer.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return driver.Denied
	case http.StatusNotFound:
		return driver.NotFound
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return driver.Throttled
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return driver.Timeout
	case http.StatusInternalServerError:
		if strings.Contains(answer.text, "timeout") {
			return driver.Timeout
		}
	}
	return driver.Rejected
}
