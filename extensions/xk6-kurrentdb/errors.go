package kurrentdb

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var (
	errNoTopic = errors.New("the stream does not exist")
	errSettled = errors.New("the delivery is settled already")
	errGone    = errors.New("the message's subscription has ended: the server delivers it again")
	errChanged = errors.New("the stream's metadata was changed by others at the same time")
	errMessage = errors.New("the message cannot be an event")

	errUnconfirmed = errors.New("the server's first answer does not confirm the subscription")
)

// answerError is a server's answer other than success.
type answerError struct {
	code      codes.Code
	text      string
	exception string // the server's name for it, such as "access-denied", or ""
}

func (e *answerError) Error() string {
	if e.exception != "" {
		return fmt.Sprintf("%s (%s)", e.text, e.exception)
	}
	return fmt.Sprintf("%s (%s)", e.text, e.code)
}

// answered converts a call's error and trailer.
func answered(err error, trailer metadata.MD) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	e := &answerError{code: s.Code(), text: s.Message()}
	if names := trailer.Get("exception"); len(names) > 0 {
		e.exception = names[0]
	}
	if e.exception == notLeader {
		e.text = "the server does not lead its cluster: the URL must have the leader's host"
	}
	return e
}

// The server's names for errors that this driver handles.
const (
	notLeader = "not-leader"
	noGroup   = "persistent-subscription-does-not-exist"
)

// exceptions has the kinds of the server's names, calls the kinds of gRPC's codes without a name.
var (
	exceptions = map[string]driver.Kind{
		notLeader:                         driver.Disconnected,
		noGroup:                           driver.NotFound,
		"persistent-subscription-dropped": driver.Disconnected,
		"access-denied":                   driver.Denied,
		"stream-not-found":                driver.NotFound,
	}
	calls = map[codes.Code]driver.Kind{
		// Canceled by the server: the driver's own context is checked before.
		codes.Unavailable: driver.Disconnected, codes.Canceled: driver.Disconnected,
		codes.DeadlineExceeded: driver.Timeout, codes.Aborted: driver.Timeout,
		codes.Unauthenticated: driver.Denied, codes.PermissionDenied: driver.Denied,
		codes.NotFound: driver.NotFound, codes.Unimplemented: driver.Unsupported,
		codes.InvalidArgument: driver.Rejected, codes.FailedPrecondition: driver.Rejected,
		codes.AlreadyExists: driver.Rejected, codes.ResourceExhausted: driver.Rejected,
		codes.OutOfRange: driver.Rejected, codes.Internal: driver.Rejected,
	}
)

// classify returns the kind of an error of gRPC or of a server.
func classify(err error) driver.Kind {
	var answer *answerError
	switch {
	case errors.As(err, &answer):
		if kind, ok := exceptions[answer.exception]; ok {
			return kind
		}
		if kind, ok := calls[answer.code]; ok {
			return kind
		}
	case errors.Is(err, errNoTopic):
		return driver.NotFound
	case errors.Is(err, errSettled), errors.Is(err, errChanged), errors.Is(err, errMessage):
		return driver.Rejected
	case errors.Is(err, errGone):
		return driver.Disconnected
	}
	return driver.Unknown
}

// hasCode reports whether an error is a server's answer with a code.
func hasCode(err error, code codes.Code) bool {
	var answer *answerError
	return errors.As(err, &answer) && answer.code == code && answer.exception != notLeader
}
