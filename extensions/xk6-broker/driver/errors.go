package driver

import (
	"context"
	"errors"
	"fmt"
)

// Kind sorts errors into the few sorts that a load test counts apart. It is the value of the metric
// tag "kind".
type Kind string

// Kinds.
const (
	Unknown      Kind = "unknown"      // none of the others
	Timeout      Kind = "timeout"      // no answer in time; the broker may have done it
	Disconnected Kind = "disconnected" // no connection, or it broke
	Throttled    Kind = "throttled"    // the broker asks to slow down
	Rejected     Kind = "rejected"     // the broker refuses this message or request: too large, unroutable, invalid
	NotFound     Kind = "not_found"    // no such topic, group or server-side object
	Denied       Kind = "denied"       // authentication, authorisation or certificates
	Unsupported  Kind = "unsupported"  // the broker or the driver has no such thing, or they have no protocol in common
	Closed       Kind = "closed"       // used after Close
	Canceled     Kind = "canceled"     // the test ended
)

// ErrClosed is what a driver returns when something is used after Close.
var ErrClosed = errors.New("closed")

// OptionError is what a driver returns where the value of an option turns out to be of no use; its
// kind is [Rejected].
type OptionError struct {
	Name string
	Err  error
}

func (e *OptionError) Error() string { return fmt.Sprintf("option %q: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *OptionError) Unwrap() error { return e.Err }

// Error is an error with its kind. The engine makes it, once; Unwrap gives the client's own.
type Error struct {
	Kind   Kind
	Driver string
	Op     string // "connect", "send", "receive", "ack", ...
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %v (%s)", e.Driver, e.Op, e.Err, e.Kind) }

// Unwrap gives the client library's error.
func (e *Error) Unwrap() error { return e.Err }

// Wrap gives err its kind. It returns nil for nil, and an [Error] as it is.
func (d *Driver) Wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Kind: d.KindOf(err), Driver: d.Name, Op: op, Err: err}
}

// KindOf returns the kind of an error of this driver; "" for nil.
func (d *Driver) KindOf(err error) Kind {
	var e *Error
	var option *OptionError
	switch {
	case err == nil:
		return ""
	case errors.As(err, new(*ProtocolError)):
		return Unsupported
	case errors.As(err, &option):
		return Rejected
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, errors.ErrUnsupported):
		return Unsupported
	case errors.Is(err, ErrClosed):
		return Closed
	}
	if d.Classify != nil {
		if kind := d.Classify(err); kind != Unknown {
			return kind
		}
	}
	return NetworkKind(err)
}
