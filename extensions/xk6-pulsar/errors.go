package pulsar

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var (
	errTopicName = errors.New("it should look like name, tenant/namespace/name or persistent://tenant/namespace/name")
	errSettled   = errors.New("the message has been settled before")
	errGone      = errors.New("the client has closed the producer")
)

// statusError is a refusal of the admin API.
type statusError struct {
	code   int
	reason string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("admin API: status %d: %s", e.code, e.reason)
}

// causedError is an error of the client with the cause from its log.
type causedError struct{ err, cause error }

func (e *causedError) Error() string   { return e.err.Error() + ": " + e.cause.Error() }
func (e *causedError) Unwrap() []error { return []error{e.cause, e.err} }

// refusedError is a broker's answer to the greeting of a connection.
type refusedError struct{ answer string }

func (e *refusedError) Error() string { return "the broker refuses the connection: " + e.answer }

// results has the kinds of the client's own errors.
var results = map[pulsar.Result]driver.Kind{
	pulsar.TimeoutError:                          driver.Timeout,
	pulsar.ConnectError:                          driver.Disconnected,
	pulsar.ReadError:                             driver.Disconnected,
	pulsar.NotConnectedError:                     driver.Disconnected,
	pulsar.ServiceUnitNotReady:                   driver.Disconnected,
	pulsar.AuthenticationError:                   driver.Denied,
	pulsar.AuthorizationError:                    driver.Denied,
	pulsar.InvalidMessage:                        driver.Rejected,
	pulsar.InvalidTopicName:                      driver.Rejected,
	pulsar.MessageTooBig:                         driver.Rejected,
	pulsar.AddToBatchFailed:                      driver.Rejected,
	pulsar.TopicTerminated:                       driver.Rejected,
	pulsar.ConsumerBusy:                          driver.Rejected,
	pulsar.ProducerFenced:                        driver.Rejected,
	pulsar.ProducerQueueIsFull:                   driver.Throttled,
	pulsar.TooManyLookupRequestException:         driver.Throttled,
	pulsar.ProducerBlockedQuotaExceededError:     driver.Throttled,
	pulsar.ProducerBlockedQuotaExceededException: driver.Throttled,
	pulsar.ClientMemoryBufferIsFull:              driver.Throttled,
	pulsar.TopicNotFound:                         driver.NotFound,
	pulsar.SubscriptionNotFound:                  driver.NotFound,
	pulsar.ConsumerNotFound:                      driver.NotFound,
	pulsar.ConsumerClosed:                        driver.Closed,
	pulsar.ProducerClosed:                        driver.Disconnected, // by the broker
	pulsar.AlreadyClosedError:                    driver.Disconnected,
}

// answers has the names of the broker's refusals, which the client returns as text only. The first
// that the text contains counts.
var answers = []struct {
	name string
	kind driver.Kind
}{
	{"AuthenticationError", driver.Denied},
	{"AuthorizationError", driver.Denied},
	{"TopicNotFound", driver.NotFound},
	{"SubscriptionNotFound", driver.NotFound},
	{"ConsumerNotFound", driver.NotFound},
	{"ServiceNotReady", driver.Disconnected},
	{"MetadataError", driver.Disconnected},
	{"TooManyRequests", driver.Throttled},
	{"ProducerBlockedQuotaExceeded", driver.Throttled},
	{"PersistenceError", driver.Rejected},
	{"ConsumerBusy", driver.Rejected},
	{"ProducerBusy", driver.Rejected},
	{"ConsumerAssignError", driver.Rejected},
	{"InvalidTopicName", driver.Rejected},
	{"IncompatibleSchema", driver.Rejected},
	{"TopicTerminatedError", driver.Rejected},
	{"NotAllowedError", driver.Rejected},
	{"ProducerFenced", driver.Rejected},
	{"UnsupportedVersionError", driver.Unsupported},
	{"size exceeds", driver.Rejected},
	{"consumer state is closed", driver.Closed},
	{"request timed out", driver.Timeout},
	{"connection closed", driver.Disconnected},
	{"connection error", driver.Disconnected},
}

// classify returns the kind of an error of the client or of the admin API.
func classify(err error) driver.Kind {
	var status *statusError
	var own *pulsar.Error
	switch {
	case errors.As(err, new(*refusedError)):
		return driver.Denied
	case errors.Is(err, errTopicName), errors.Is(err, errSettled):
		return driver.Rejected
	case errors.Is(err, errGone):
		return driver.Disconnected
	case errors.As(err, &status):
		return kindOfStatus(status.code)
	case errors.As(err, &own):
		if kind, ok := results[own.Result()]; ok {
			return kind
		}
	}
	if kind := driver.NetworkKind(err); kind != driver.Unknown {
		return kind
	}
	text := err.Error()
	for _, a := range answers {
		if strings.Contains(text, a.name) {
			return a.kind
		}
	}
	return driver.Unknown
}

func kindOfStatus(code int) driver.Kind {
	switch {
	case code == 401, code == 403:
		return driver.Denied
	case code == 404:
		return driver.NotFound
	case code == 429:
		return driver.Throttled
	case code == 408, code == 504:
		return driver.Timeout
	case code == 405, code == 501:
		return driver.Unsupported
	case code == 503:
		return driver.Disconnected
	case code >= 400 && code < 500:
		return driver.Rejected
	}
	return driver.Unknown
}
