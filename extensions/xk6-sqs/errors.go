package sqs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var (
	errNoAnswer = errors.New("the service's answer says nothing of this message")
	errStranger = errors.New("what answers at this port does not speak the protocol of SQS")
)

// entryError is the service's refusal of one message of a batch.
type entryError struct{ code, message string }

func (e *entryError) Error() string { return e.code + ": " + e.message }

// ErrorCode is the service's name for it.
func (e *entryError) ErrorCode() string { return e.code }

// kinds are what the service's codes mean, by a part of them: AWS has several names for the same, with the service's in front of some.
var kinds = []struct {
	part string
	kind driver.Kind
}{
	{"NonExistentQueue", driver.NotFound},
	{"QueueDoesNotExist", driver.NotFound},
	{"ResourceNotFound", driver.NotFound},
	{"AccessDenied", driver.Denied},
	{"InvalidClientTokenId", driver.Denied},
	{"UnrecognizedClient", driver.Denied},
	{"SignatureDoesNotMatch", driver.Denied},
	{"IncompleteSignature", driver.Denied},
	{"InvalidSignature", driver.Denied},
	{"MissingAuthenticationToken", driver.Denied},
	{"ExpiredToken", driver.Denied},
	{"InvalidAccessKeyId", driver.Denied},
	{"InvalidSecurity", driver.Denied},
	{"OptInRequired", driver.Denied},
	{"NotAuthorized", driver.Denied},
	{"AuthFailure", driver.Denied},
	{"Throttl", driver.Throttled},
	{"OverLimit", driver.Throttled},
	{"PurgeQueueInProgress", driver.Throttled},
	{"ServiceUnavailable", driver.Throttled},
	{"TooManyRequests", driver.Throttled},
	{"SlowDown", driver.Throttled},
	{"QueueDeletedRecently", driver.Throttled},
	{"RequestTimeout", driver.Timeout},
	{"UnsupportedOperation", driver.Unsupported},
	{"InvalidAction", driver.Unsupported},
	{"UnknownOperation", driver.Unsupported},
}

// classify tells the kind of an error of the client library or of the service.
func classify(err error) driver.Kind {
	var answer interface{ ErrorCode() string }
	switch {
	case errors.As(err, new(*credentialsError)):
		return driver.Denied
	case errors.Is(err, errStranger):
		return driver.Rejected
	case errors.As(err, &answer):
		for _, k := range kinds {
			if strings.Contains(answer.ErrorCode(), k.part) {
				return k.kind
			}
		}
		return driver.Rejected
	}
	return driver.Unknown
}

// forbidden tells whether the service knows who asks, and does not let him do this.
func forbidden(err error) bool {
	var answer smithy.APIError
	return errors.As(err, &answer) && strings.Contains(answer.ErrorCode(), "AccessDenied")
}

// stranger adds to the first request's error that it is no answer of SQS, where that is so.
func stranger(err error) error {
	var answer smithy.APIError
	known := errors.As(err, &answer) && answer.ErrorCode() != "UnknownError"
	if !known && (answer != nil || errors.As(err, new(*smithy.DeserializationError)) || noHTTP(err)) {
		return fmt.Errorf("%w: %w", errStranger, err)
	}
	return err
}

// noHTTP tells whether what answered speaks no HTTP. A server that speaks first is that too: net/http says so of its connection, with no error in it, where
// it has not yet asked anything.
func noHTTP(err error) bool {
	return strings.Contains(err.Error(), "malformed HTTP") || strings.Contains(err.Error(), "readLoopPeekFailLocked: %!w(<nil>)")
}
