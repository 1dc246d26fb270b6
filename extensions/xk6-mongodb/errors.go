package mongodb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	wire "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var (
	errSettled = errors.New("the delivery is settled already, or its lease is over and another one has begun")
	errLarge   = fmt.Errorf("the body is larger than the %d bytes that a document leaves for it", maxBody)
	errWeaker  = errors.New(
		"the replica set has fewer members than when the producer opened, and w=majority would prove less",
	)
)

// awayError reports that no server can be used. Unwrap returns the reason of one of them.
type awayError struct{ last error }

func (e *awayError) Error() string { return "no server can be used: " + e.last.Error() }

// Unwrap returns the reason.
func (e *awayError) Unwrap() error { return e.last }

// absentError reports a topic that does not exist.
type absentError struct{ database, topic string }

func (e *absentError) Error() string {
	return fmt.Sprintf("database %s has no collection %q", e.database, e.topic)
}

// oldError is that the client library and the server have no version of the protocol in common.
type oldError struct{ error }

// incompatible reports whether the client library refuses the server's version. That error has no
// type.
func incompatible(err error) bool {
	return strings.Contains(err.Error(), "wire version") && strings.Contains(err.Error(), "this version of the Go driver")
}

// timeoutError is that an answer took longer than an option allows.
type timeoutError struct {
	option string
	within time.Duration
	err    error
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("option %q: no answer within %v: %v", e.option, e.within, e.err)
}

// Unwrap returns the client's error.
func (e *timeoutError) Unwrap() error { return e.err }

// reason returns the cause of ctx's end, the reason why no server can be used, that the option
// timeout has passed, or err.
func (c *conn) reason(ctx context.Context, err error) error {
	var selection topology.ServerSelectionError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case incompatible(err):
		return oldError{err}
	case errors.As(err, &selection):
		last := error(selection)
		for _, s := range selection.Desc.Servers {
			if s.LastError != nil {
				last = s.LastError
			}
		}
		return &awayError{last}
	case errors.Is(err, context.DeadlineExceeded):
		return &timeoutError{"timeout", c.timeout, err}
	}
	return err
}

// kinds has the kinds of the server's error codes. Other codes are rejected.
var kinds = map[int]driver.Kind{
	11: driver.Denied, 13: driver.Denied, 18: driver.Denied, 33: driver.Denied, 8000: driver.Denied,
	26: driver.NotFound, 73: driver.Rejected,
	50: driver.Timeout, 64: driver.Timeout, 202: driver.Timeout, 262: driver.Timeout,
	6: driver.Disconnected, 7: driver.Disconnected, 89: driver.Disconnected, 91: driver.Disconnected,
	189: driver.Disconnected, 9001: driver.Disconnected,
	10107: driver.Disconnected, 11600: driver.Disconnected, 11602: driver.Disconnected, 13435: driver.Disconnected,
	13436: driver.Disconnected,
	112:   driver.Throttled, 365: driver.Throttled, 462: driver.Throttled, 14031: driver.Throttled,
	59: driver.Unsupported, 115: driver.Unsupported, 263: driver.Unsupported, 40573: driver.Unsupported,
}

// classify returns the kind of an error of the client library or of the server.
func classify(err error) driver.Kind {
	switch {
	case errors.Is(err, errSettled),
		errors.Is(err, errLarge),
		errors.Is(err, errWeaker),
		errors.As(err, new(*differenceError)):
		return driver.Rejected
	case errors.As(err, new(oldError)):
		return driver.Unsupported
	case errors.As(err, new(*absentError)):
		return driver.NotFound
	}
	if kind := refusal(err); kind != driver.Unknown {
		return kind
	}
	if kind := driver.NetworkKind(err); kind != driver.Unknown {
		return kind
	}
	switch {
	case errors.As(err, new(*auth.Error)):
		return driver.Denied
	case mongo.IsTimeout(err):
		return driver.Timeout
	case errors.As(err, new(*awayError)),
		mongo.IsNetworkError(err),
		errors.As(err, new(topology.ConnectionError)),
		errors.Is(err, mongo.ErrClientDisconnected):
		return driver.Disconnected
	case errors.As(err, new(wire.RetryablePoolError)): // another command's connection broke
		return driver.Disconnected
	}
	return driver.Unknown
}

// refusal returns the kind of a server's answer; Unknown without an answer.
func refusal(err error) driver.Kind {
	var server mongo.ServerError
	if !errors.As(err, &server) {
		return driver.Unknown
	}
	codes := server.ErrorCodes()
	for _, code := range codes {
		if kind, ok := kinds[code]; ok {
			return kind
		}
	}
	for _, code := range codes {
		if code != 0 {
			return driver.Rejected
		}
	}
	return driver.Unknown // an error of the network, in the form of a server's
}
