package redis

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

const (
	errNoTopic      replyError = "there is no such topic"
	errSettled      replyError = "the delivery is settled already"
	errNoSubscriber replyError = "no subscriber got the message, and the option requireSubscriber is set"
)

var errNoHeaders = fmt.Errorf("headers: %w", errors.ErrUnsupported)

// kinds has the kinds of errors by the first word of the answer.
var kinds = map[string]driver.Kind{
	"NOAUTH": driver.Denied, "WRONGPASS": driver.Denied, "NOPERM": driver.Denied, "DENIED": driver.Denied,
	"OOM": driver.Throttled, "LOADING": driver.Throttled, "BUSY": driver.Throttled, "TRYAGAIN": driver.Throttled,
	"NOREPLICAS": driver.Rejected, "MISCONF": driver.Rejected, "WRONGTYPE": driver.Rejected, "EXECABORT": driver.Rejected,
	"READONLY": driver.Disconnected, "MOVED": driver.Disconnected, "ASK": driver.Disconnected,
	"CLUSTERDOWN": driver.Disconnected, "MASTERDOWN": driver.Disconnected, "UNBLOCKED": driver.Disconnected,
	"NOGROUP": driver.NotFound, "NOSCRIPT": driver.NotFound,
}

// classify returns the kind of an error of the client library, of the server, or of the network.
func classify(err error) driver.Kind {
	var server redis.Error
	switch {
	case errors.Is(err, errNoTopic), errors.Is(err, errTaken):
		return driver.NotFound
	case errors.Is(err, errNoSubscriber), errors.Is(err, errSettled):
		return driver.Rejected
	case errors.As(err, new(unprovenError)), errors.Is(err, redis.ErrPoolTimeout):
		return driver.Timeout
	case errors.Is(err, redis.ErrClosed):
		return driver.Closed
	case errors.As(err, &server):
		return kindOfAnswer(server.Error())
	case errors.Is(err, errProtocol):
		return driver.Disconnected
	}
	if kind := driver.NetworkKind(err); kind != driver.Unknown {
		return kind
	}
	switch {
	case strings.Contains(err.Error(), "all sentinels"), strings.Contains(err.Error(), "cluster has no"):
		return driver.Disconnected // the client library has no type for these
	}
	return driver.Unknown
}

func kindOfAnswer(answer string) driver.Kind {
	if strings.HasPrefix(answer, "UNBLOCKED") && strings.Contains(answer, "no longer exists") {
		return driver.NotFound // the stream was deleted; the others are changes of the server's part
	}
	word, _, _ := strings.Cut(answer, " ")
	if kind, ok := kinds[word]; ok {
		return kind
	}
	switch {
	case strings.Contains(answer, "no such key"):
		return driver.NotFound
	case strings.Contains(answer, "AUTH"), strings.Contains(answer, "invalid username-password"):
		return driver.Denied
	case strings.Contains(answer, "unknown command"):
		return driver.Unsupported
	case strings.Contains(answer, "max number of clients"):
		return driver.Throttled
	}
	return driver.Rejected
}

// elsewhere reports whether the server answered that another one must be asked.
func elsewhere(err error) bool {
	word, _, _ := strings.Cut(err.Error(), " ")
	return word == "MOVED" || word == "READONLY" || word == "CLUSTERDOWN" || word == "MASTERDOWN"
}
