package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"strings"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-rocketmq/internal/remoting"
)

var (
	errSettled  = errors.New("the delivery is settled already, or of another consumer")
	errNoTopic  = errors.New("no route info of this topic")
	errNoMaster = errors.New("no broker of the topic has a master")
)

// statusError is an answer that is not a success.
type statusError struct {
	code v2.Code
	text string
}

func (e *statusError) Error() string { return fmt.Sprintf("%v (%d): %s", e.code, e.code, e.text) }

// check returns an error for a status that is not a success.
func check(s *v2.Status) error {
	if s.GetCode() == v2.Code_OK {
		return nil
	}
	text, _, _ := strings.Cut(s.GetMessage(), "\n")
	return &statusError{s.GetCode(), text}
}

// statuses has the kinds of codes; other codes have the kind of their first three digits.
var statuses = map[v2.Code]driver.Kind{
	v2.Code_UNAUTHORIZED: driver.Denied, v2.Code_FORBIDDEN: driver.Denied, v2.Code_PAYMENT_REQUIRED: driver.Denied,
	v2.Code_NOT_FOUND: driver.NotFound, v2.Code_TOPIC_NOT_FOUND: driver.NotFound,
	v2.Code_CONSUMER_GROUP_NOT_FOUND: driver.NotFound,
	v2.Code_REQUEST_TIMEOUT:          driver.Timeout, v2.Code_PROXY_TIMEOUT: driver.Timeout,
	v2.Code_MASTER_PERSISTENCE_TIMEOUT: driver.Timeout, v2.Code_SLAVE_PERSISTENCE_TIMEOUT: driver.Timeout,
	v2.Code_TOO_MANY_REQUESTS: driver.Throttled, v2.Code_HA_NOT_AVAILABLE: driver.Rejected,
	v2.Code_NOT_IMPLEMENTED: driver.Unsupported, v2.Code_UNSUPPORTED: driver.Unsupported,
	v2.Code_VERSION_UNSUPPORTED: driver.Unsupported,
}

// calls has the kinds of gRPC's own codes.
var calls = map[codes.Code]driver.Kind{
	codes.Unavailable: driver.Disconnected, codes.DeadlineExceeded: driver.Timeout, codes.Canceled: driver.Canceled,
	codes.Unauthenticated: driver.Denied, codes.PermissionDenied: driver.Denied, codes.ResourceExhausted: driver.Rejected,
	codes.Unimplemented: driver.Unsupported,
}

// Codes of the remoting protocol.
const (
	remoteSystemBusy    = 2
	remoteNotSupported  = 3
	remoteNoPermission  = 16
	remoteTopicMissing  = 17
	remoteOffsetMissing = 22
	remoteGroupMissing  = 26
)

// remotes has the kinds of the remoting protocol's codes.
var remotes = map[int]driver.Kind{
	remoteSystemBusy: driver.Throttled, remoteNotSupported: driver.Unsupported, remoteNoPermission: driver.Denied,
	remoteTopicMissing: driver.NotFound, remoteGroupMissing: driver.NotFound, remoteOffsetMissing: driver.NotFound,
}

// classify returns the kind of an error of gRPC or of a server.
func classify(err error) driver.Kind {
	var answer *statusError
	var remote *remoting.Error
	switch {
	case errors.As(err, &answer):
		if kind, ok := statuses[answer.code]; ok {
			return kind
		}
		if answer.code >= 40000 && answer.code < 50000 {
			return driver.Rejected
		}
		return driver.Unknown
	case errors.As(err, &remote):
		if kind, ok := remotes[remote.Code]; ok {
			return kind
		}
		return driver.Rejected
	case errors.Is(err, errNoTopic):
		return driver.NotFound
	case errors.Is(err, errSettled), errors.As(err, new(*orderError)):
		return driver.Rejected
	case errors.Is(err, errNoMaster):
		return driver.Disconnected
	}
	if kind := driver.NetworkKind(err); kind != driver.Unknown {
		return kind
	}
	if kind, ok := calls[status.Code(err)]; ok {
		return kind
	}
	return driver.Unknown
}

// isNotFound reports whether something is not there.
func isNotFound(err error) bool { return err != nil && classify(err) == driver.NotFound }

// called returns ctx's error if ctx ended the call, else err.
func called(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
