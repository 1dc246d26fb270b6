package amqp1

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// kindError gives an error without a type its kind.
type kindError struct {
	kind driver.Kind
	err  error
}

func (e *kindError) Error() string { return e.err.Error() }
func (e *kindError) Unwrap() error { return e.err }

// refused returns the kind of the client library's untyped errors of connecting.
func refused(err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "auth failed with code"), strings.Contains(text, "no supported auth mechanism"):
		return &kindError{driver.Denied, err}
	case strings.Contains(text, "unexpected protocol version 0.9.1"):
		return fmt.Errorf("it speaks AMQP 0-9-1, for which the scheme is rabbitmq: %w: %w", errors.ErrUnsupported, err)
	case strings.Contains(text, "unexpected protocol"), strings.Contains(text, "invalid protoHeader"):
		return &kindError{driver.Unsupported, err}
	}
	return err
}

var errSettled = &kindError{driver.Rejected, errors.New("the message is settled already")}

// outcome returns the error of the broker's answer for a message. It is no error if an exchange has
// no queue for it.
func outcome(state amqp.DeliveryState, exchange bool) error {
	switch state := state.(type) {
	case *amqp.StateAccepted:
		return nil
	case *amqp.StateRejected:
		if state.Error != nil {
			return fmt.Errorf("the broker rejected the message: %w", state.Error)
		}
		return &kindError{driver.Rejected, errors.New("the broker rejected the message without a reason")}
	case *amqp.StateReleased:
		if exchange {
			return nil
		}
		return &kindError{driver.NotFound, errors.New("the broker released the message: it has no queue for it")}
	case *amqp.StateModified:
		return &kindError{driver.Rejected, errors.New("the broker gave the message back (modified)")}
	}
	return &kindError{driver.Unknown, fmt.Errorf("the broker's answer for the message is no outcome: %T", state)}
}

// conditions has the kinds of a broker's error conditions.
var conditions = map[amqp.ErrCond]driver.Kind{
	amqp.ErrCondNotFound:              driver.NotFound,
	amqp.ErrCondResourceDeleted:       driver.NotFound,
	amqp.ErrCondUnauthorizedAccess:    driver.Denied,
	amqp.ErrCondNotImplemented:        driver.Unsupported,
	amqp.ErrCondResourceLimitExceeded: driver.Throttled,
	amqp.ErrCondTransferLimitExceeded: driver.Throttled,
	amqp.ErrCondConnectionForced:      driver.Disconnected,
	amqp.ErrCondConnectionRedirect:    driver.Disconnected,
	amqp.ErrCondDetachForced:          driver.Disconnected,
	amqp.ErrCondLinkRedirect:          driver.Disconnected,
	amqp.ErrCondStolen:                driver.Disconnected,
}

// Parts of Artemis's other messages: a user lacks a right, an address does not exist.
const (
	notPermitted = "does not have permission="
	noAddress    = "AMQ119002"
)

// classify returns the kind of an error of the client library or of the server.
func classify(err error) driver.Kind {
	var typed *kindError
	var server *amqp.Error
	switch {
	case errors.As(err, &typed):
		return typed.kind
	case errors.As(err, &server):
		if kind, ok := conditions[server.Condition]; ok {
			return kind
		}
		if strings.Contains(server.Description, notPermitted) {
			return driver.Denied
		}
		if strings.Contains(server.Description, noAddress) {
			return driver.NotFound
		}
		return driver.Rejected
	case closedBelow(err):
		return driver.Disconnected
	}
	return driver.Unknown
}

// closedBelow reports whether a link, its session or its connection is closed.
func closedBelow(err error) bool {
	return errors.As(err, new(*amqp.LinkError)) || errors.As(err, new(*amqp.SessionError)) ||
		errors.As(err, new(*amqp.ConnError))
}
