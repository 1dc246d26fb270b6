package driver

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// Kind is the kind of an error, and the value of the metric tag "kind".
type Kind string

// Kinds.
const (
	Unknown      Kind = "unknown"      // none of the others
	Timeout      Kind = "timeout"      // no answer in time; the broker may have stored the message
	Disconnected Kind = "disconnected" // no connection, or it broke
	Throttled    Kind = "throttled"    // the broker asks to slow down
	Rejected     Kind = "rejected"     // the broker refuses this message or request: too large, unroutable, invalid
	NotFound     Kind = "not_found"    // no such topic, group or server-side object
	Denied       Kind = "denied"       // authentication, authorization or certificates
	Unsupported  Kind = "unsupported"  // not a feature of the broker or the driver
	Closed       Kind = "closed"       // used after Close
	Canceled     Kind = "canceled"     // the test ended
)

// ErrClosed is the error of a use after Close.
var ErrClosed = errors.New("closed")

// OptionError reports an option whose value cannot be used. Its kind is [Rejected].
type OptionError struct {
	Name string
	Err  error
}

func (e *OptionError) Error() string { return fmt.Sprintf("option %q: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *OptionError) Unwrap() error { return e.Err }

// UnknownOptionError reports an option that the driver does not have in that place. A caller with
// options of its own adds their names.
type UnknownOptionError struct {
	Driver string
	Name   string
	Where  string   // " here", [InURL], or "" if the options of all scopes are allowed
	Known  []string // allowed names
}

// InURL is [UnknownOptionError.Where] for an option in a URL's query.
const InURL = " in the URL"

func (e *UnknownOptionError) Error() string {
	return fmt.Sprintf("%s has no option %q%s: known are %s", e.Driver, e.Name, e.Where, strings.Join(e.Known, ", "))
}

// PartError is the error of a [Consumer.Settle] for some of its messages. The broker has confirmed
// that it settled the others.
type PartError struct {
	Settled int
	Err     error // the first
}

func (e *PartError) Error() string {
	return fmt.Sprintf("%v (the broker has settled %d others)", e.Err, e.Settled)
}

// Unwrap returns the error of the messages that are not settled.
func (e *PartError) Unwrap() error { return e.Err }

// JoinSettled returns the first error of the answers to each message of a [Consumer.Settle]: as a
// [PartError] if some of them are nil.
func JoinSettled(errs ...error) error {
	var first error
	settled := 0
	for _, err := range errs {
		if err == nil {
			settled++
		}
		first = cmp.Or(first, err)
	}
	if first == nil || settled == 0 {
		return first
	}
	return &PartError{settled, first}
}

// Error is an error with its kind, made once by the engine.
type Error struct {
	Kind   Kind
	Driver string
	Op     string // "connect", "send", "receive", "ack", ...
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %v (%s)", e.Driver, e.Op, e.Err, e.Kind) }

// Unwrap returns the client library's error.
func (e *Error) Unwrap() error { return e.Err }

// Wrap returns an [Error] for err; nil for nil, and an [Error] unchanged.
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

// NetworkKind returns the kind of an error of the network or of TLS, else [Unknown].
// [Driver.KindOf] uses it if Classify returns Unknown.
func NetworkKind(err error) Kind {
	var op *net.OpError
	var network net.Error
	switch {
	case errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error"), // an alert of TLS
		errors.As(err, new(tls.AlertError)),
		errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(x509.HostnameError)),
		errors.As(err, new(x509.UnknownAuthorityError)), errors.As(err, new(x509.CertificateInvalidError)):
		return Denied
	case errors.As(err, new(tls.RecordHeaderError)): // the server has no TLS
		return Unsupported
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return Timeout
	case network != nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Disconnected
	}
	return Unknown
}
