package nats

import (
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var (
	errHeaderName  = errors.New("the name of a NATS header is printable ASCII, without spaces and without " + separators)
	errHeaderValue = errors.New("a NATS header value cannot hold a line break, nor space at its ends")
	errCertificate = errors.New("holds no certificate in PEM form")
	errDuplicate   = errors.New("the server dropped it as a duplicate of an earlier message with the same Nats-Msg-Id")
	errNoLeader    = errors.New(
		"no server answers for the stream, which has kept messages before: it has no leader, as without a quorum of its servers, or is just gone",
	)
	errForeign = errors.New("the message was not received by this consumer")
)

var kinds = []struct {
	kind driver.Kind
	errs []error
}{
	{driver.Denied, []error{
		nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired,
		nats.ErrPermissionViolation, nats.ErrSecureConnRequired, nats.ErrSecureConnWanted, nats.ErrTLS,
		nats.ErrNkeysNotSupported,
	}},
	{driver.NotFound, []error{
		nats.ErrNoResponders, jetstream.ErrNoStreamResponse, jetstream.ErrStreamNotFound, jetstream.ErrConsumerNotFound,
		jetstream.ErrConsumerDoesNotExist, jetstream.ErrConsumerDeleted, jetstream.ErrMsgNotFound,
	}},
	{driver.Rejected, []error{
		nats.ErrMaxPayload, nats.ErrBadSubject, nats.ErrBadQueueName, nats.ErrBadHeaderMsg, nats.ErrHeadersNotSupported,
		nats.ErrInvalidMsg, nats.ErrMsgNoReply, jetstream.ErrInvalidStreamName, jetstream.ErrInvalidConsumerName,
		jetstream.ErrInvalidSubject, jetstream.ErrMsgAlreadyAckd, errHeaderName, errHeaderValue, errDuplicate, errForeign,
		errCertificate,
	}},
	{driver.Throttled, []error{
		nats.ErrSlowConsumer, nats.ErrMaxConnectionsExceeded, nats.ErrMaxAccountConnectionsExceeded,
		nats.ErrMaxSubscriptionsExceeded, jetstream.ErrTooManyStalledMsgs, jetstream.ErrMaximumConsumersLimit,
	}},
	{driver.Unsupported, []error{jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount}},
	{driver.Timeout, []error{
		nats.ErrTimeout, nats.ErrDrainTimeout, jetstream.ErrAsyncPublishTimeout, jetstream.ErrNoHeartbeat,
	}},
	{driver.Disconnected, []error{
		nats.ErrDisconnected, nats.ErrReconnectBufExceeded, nats.ErrConnectionClosed, nats.ErrConnectionReconnecting,
		nats.ErrConnectionDraining, nats.ErrNoServers, nats.ErrStaleConnection, nats.ErrInvalidConnection,
		nats.ErrNoInfoReceived,
		jetstream.ErrServerShutdown, jetstream.ErrConsumerLeadershipChanged, jetstream.ErrConnectionClosed, errNoLeader,
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
	}},
}

// Codes of the JetStream API that nats.go has no name for, and the classes they come in.
const (
	codeAccountExceeded     = 10002
	codeNoLeader            = 10008
	codeInsufficient        = 10023
	codeMemoryExceeded      = 10028
	codeStorageExceeded     = 10047
	codeInvalidConfig       = 10052
	codeLimitsExceeded      = 10053
	codeReplicasUnsupported = 10074
	codeStoreFailed         = 10077 // such as a limit of a stream that discards what is new
	codeStreamOffline       = 10118
	codeConsumerOffline     = 10119
	codeDuplicate           = 10158 // of a message that the server is storing

	classBadRequest  = 400
	classNotFound    = 404
	classTooMany     = 429
	classUnavailable = 503
)

// classify returns the kind of an error of nats.go, or of JetStream's API.
func classify(err error) driver.Kind {
	for _, k := range kinds {
		for _, one := range k.errs {
			if errors.Is(err, one) {
				return k.kind
			}
		}
	}
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return classifyAPI(api)
	}
	return driver.Unknown
}

func classifyAPI(e *jetstream.APIError) driver.Kind {
	switch e.ErrorCode {
	case codeAccountExceeded,
		codeInsufficient,
		codeMemoryExceeded,
		codeStorageExceeded,
		codeLimitsExceeded,
		codeStoreFailed:
		return driver.Throttled
	case codeNoLeader, codeConsumerOffline, codeStreamOffline:
		return driver.Disconnected
	case codeInvalidConfig, codeDuplicate:
		return driver.Rejected
	case codeReplicasUnsupported:
		return driver.Unsupported
	}
	switch e.Code {
	case classBadRequest:
		return driver.Rejected
	case classNotFound:
		return driver.NotFound
	case classTooMany:
		return driver.Throttled
	case classUnavailable:
		return driver.Disconnected
	}
	return driver.Unknown
}
