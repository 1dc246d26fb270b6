package blueflood

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
	errHeaders = fmt.Errorf("headers: %w", errors.ErrUnsupported)
	errNumber  = errors.New(`the body is not the text of a number; with option "value" at "size" its size is sent`)
	errAhead   = errors.New("more than a point per metric and millisecond: their times are 10 minutes ahead, " +
		`the server's limit: raise the option "metrics"`)
)

// tooLarge is a batch whose request the server would never answer.
type tooLarge struct{ messages, bytes, most int }

func (e *tooLarge) Error() string {
	return fmt.Sprintf("too large: a request of %d bytes for %d messages, and the server answers at most %d: "+
		"send fewer at a time, or see option \"maxRequest\"", e.bytes, e.messages, e.most)
}

// entry is an answer's part for one point.
type entry struct {
	MetricName string
	Timestamp  int64
	Source     string
	Message    string
}

func (e entry) String() string {
	if e.Source == "" {
		return e.Message
	}
	return e.Source + ": " + e.Message
}

// answerError is an answer other than 200.
type answerError struct {
	status  int
	text    string
	entries []entry
}

func newAnswerError(status int, body []byte) *answerError {
	var object struct{ Errors []entry }
	if json.Unmarshal(body, &object) != nil || len(object.Errors) == 0 {
		return &answerError{status: status, text: strings.TrimSpace(string(body[:min(len(body), maxShown)]))}
	}
	return &answerError{status, object.Errors[0].String(), object.Errors}
}

// maxShown is the number of bytes of an answer in an error.
const maxShown = 1 << 10

func (e *answerError) Error() string {
	text := fmt.Sprintf("%d %s: %s", e.status, http.StatusText(e.status), e.text)
	if e.status == http.StatusAccepted {
		text += " (the points may be stored)"
	}
	return text
}

// pointError is the answer for one message's point.
type pointError struct {
	status int
	entry  entry
}

func (e *pointError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.status, http.StatusText(e.status), e.entry)
}

// classify returns the kind of an error.
func classify(err error) driver.Kind {
	var answer *answerError
	switch {
	case errors.Is(err, errNumber), errors.As(err, new(*tooLarge)), errors.As(err, new(*pointError)):
		return driver.Rejected
	case errors.Is(err, errAhead):
		return driver.Throttled
	case errors.As(err, &answer):
		return kindOfStatus(answer.status)
	}
	return driver.Unknown
}

func kindOfStatus(status int) driver.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return driver.Denied
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return driver.Throttled
	case http.StatusAccepted, http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return driver.Timeout
	}
	return driver.Rejected
}
