package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// errRevoked is a settlement that came too late: the group has given the message's partition to another member, which
// receives the message again.
var errRevoked = errors.New("a partition has been given to another member of the group: what was received from it will be delivered again, and the rest is settled")

// errForgotten is a message that waited to be sent to a topic that was deleted.
var errForgotten = errors.New("the topic was deleted while the message waited to be sent")

// purged is what the library says of such a message; it exports no error for it.
const purged = "topic purged while buffered"

// noPartition is how the library begins to say that a topic has no such partition, and how many it has; there is no error for that, either.
const noPartition = "invalid record partitioning choice of "

// tooLargeError is a message that does not fit into a batch and was not sent.
type tooLargeError struct {
	batch int64 // the largest, in bytes
	err   error
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the message, with its key and headers, is larger than a batch of the producer may be: option \"batchMaxBytes\" is %d", e.batch)
}

func (e *tooLargeError) Unwrap() error { return e.err }

// kinds of the broker's own errors; what is missing here is Rejected where the client cannot change it by trying again,
// and Disconnected where it can.
var kinds = map[int16]driver.Kind{
	kerr.RequestTimedOut.Code:              driver.Timeout,
	kerr.NotEnoughReplicasAfterAppend.Code: driver.Timeout, // the leader has it, the others may come to

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

	// The broker is there and refuses for now: trying again is not a matter of the connection.
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
			return driver.Disconnected // no leader, not the leader, no coordinator: the way to the partition is broken
		}
		return driver.Rejected
	}
	switch {
	case errors.Is(err, kgo.ErrClientClosed):
		return driver.Closed
	case errors.Is(err, errRevoked):
		return driver.Rejected
	case errors.Is(err, errForgotten):
		return driver.NotFound
	case errors.Is(err, kgo.ErrMaxBuffered):
		return driver.Throttled
	case errors.As(err, new(*kadm.AuthError)), errors.As(err, new(*refusedError)):
		return driver.Denied
	}
	if kind := driver.NetworkKind(err); kind != driver.Unknown {
		return kind
	}
	switch {
	// The client may add that a connection has died, and not whether it ended that itself because nobody answered.
	case errors.Is(err, kgo.ErrRecordRetries), errors.Is(err, kgo.ErrRecordTimeout):
		return driver.Timeout
	case kgo.IsRetryableBrokerErr(err):
		return driver.Disconnected
	}
	return driver.Unknown
}
