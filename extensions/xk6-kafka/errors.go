package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// errRevoked is the error of a late settlement: another member owns the message's partition and
// receives the message again.
var errRevoked = errors.New("a partition has been given to another member of the group: " +
	"its messages are delivered again, the others are settled")

// noPartition begins the library's error for a partition that the topic does not have.
const noPartition = "invalid record partitioning choice of "

// tooLargeError is the error of a message that does not fit into a batch and was not sent.
type tooLargeError struct {
	batch int64 // the largest, in bytes
	err   error
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the message with its key and headers does not fit into a batch: "+
		"option \"batchMaxBytes\" is %d", e.batch)
}

func (e *tooLargeError) Unwrap() error { return e.err }

// kinds has the broker's own errors. Others are Disconnected if they are retriable, else Rejected.
var kinds = map[int16]driver.Kind{
	kerr.RequestTimedOut.Code:              driver.Timeout,
	kerr.NotEnoughReplicasAfterAppend.Code: driver.Timeout, // the leader has it, the others may get it

	kerr.ThrottlingQuotaExceeded.Code:  driver.Throttled,
	kerr.ShareSessionLimitReached.Code: driver.Throttled,
	kerr.GroupMaxSizeReached.Code:      driver.Throttled,

	kerr.UnknownTopicOrPartition.Code: driver.NotFound,
	kerr.UnknownTopicID.Code:          driver.NotFound,
	kerr.GroupIDNotFound.Code:         driver.NotFound,
	kerr.ResourceNotFound.Code:        driver.NotFound,
	kerr.OffsetOutOfRange.Code:        driver.NotFound,

	kerr.SaslAuthenticationFailed.Code:           driver.Denied,
	kerr.UnsupportedSaslMechanism.Code:           driver.Denied,
	kerr.IllegalSaslState.Code:                   driver.Denied,
	kerr.TopicAuthorizationFailed.Code:           driver.Denied,
	kerr.GroupAuthorizationFailed.Code:           driver.Denied,
	kerr.ClusterAuthorizationFailed.Code:         driver.Denied,
	kerr.TransactionalIDAuthorizationFailed.Code: driver.Denied,
	kerr.DelegationTokenAuthorizationFailed.Code: driver.Denied,

	kerr.UnsupportedVersion.Code:          driver.Unsupported,
	kerr.UnsupportedForMessageFormat.Code: driver.Unsupported,
	kerr.UnsupportedCompressionType.Code:  driver.Unsupported,
	kerr.UnsupportedAssignor.Code:         driver.Unsupported,
	kerr.UnsupportedEndpointType.Code:     driver.Unsupported,
	kerr.SecurityDisabled.Code:            driver.Unsupported,

	// Retriable, and the connection is not the cause.
	kerr.NotEnoughReplicas.Code: driver.Rejected,
	kerr.CorruptMessage.Code:    driver.Rejected,

	kerr.UnknownServerError.Code: driver.Unknown,
}

// classify returns the kind of a franz-go error.
func classify(err error) driver.Kind {
	if broker := (*kerr.Error)(nil); errors.As(err, &broker) {
		if kind, ok := kinds[broker.Code]; ok {
			return kind
		}
		if broker.Retriable {
			return driver.Disconnected // no leader, not the leader, no coordinator
		}
		return driver.Rejected
	}
	switch {
	case errors.Is(err, kgo.ErrClientClosed):
		return driver.Closed
	case errors.Is(err, errRevoked):
		return driver.Rejected
	case errors.Is(err, kgo.ErrMaxBuffered):
		return driver.Throttled
	case errors.As(err, new(*kadm.AuthError)), errors.As(err, new(*refusedError)):
		return driver.Denied
	}
	if kind := driver.NetworkKind(err); kind != driver.Unknown {
		return kind
	}
	switch {
	// The client may add that a connection broke. It breaks silent connections itself.
	case errors.Is(err, kgo.ErrRecordRetries), errors.Is(err, kgo.ErrRecordTimeout):
		return driver.Timeout
	case kgo.IsRetryableBrokerErr(err):
		return driver.Disconnected
	}
	return driver.Unknown
}

// noTopic reports whether a topic is absent or is not the one the client opened.
func noTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.UnknownTopicOrPartition) ||
		errors.Is(err, kerr.InconsistentTopicID)
}
