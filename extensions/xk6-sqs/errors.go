package sqs

import (
	"errors"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var errNoAnswer = errors.New("the service's answer does not mention this message")

// entryError is the service's refusal of one message of a batch.
type entryError struct{ code, message string }

func (e *entryError) Error() string { return e.code + ": " + e.message }

// ErrorCode returns the service's name for the error.
func (e *entryError) ErrorCode() string { return e.code }

// kinds has the kinds of the service's codes, by a part of them, because AWS has several names for
// the same error.
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

// classify returns the kind of an error of the client library or of the service.
func classify(err error) driver.Kind {
	var answer interface{ ErrorCode() string }
	switch {
	case errors.As(err, new(*credentialsError)):
		return driver.Denied
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

// forbidden reports whether the service authenticated the user and refuses the action.
func forbidden(err error) bool {
	var answer smithy.APIError
	return errors.As(err, &answer) && strings.Contains(answer.ErrorCode(), "AccessDenied")
}
