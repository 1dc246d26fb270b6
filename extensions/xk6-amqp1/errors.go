package amqp1

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// kindError is an error of the client library that has no type, or of this package, with its kind.
type kindError struct {
	kind driver.Kind
	err  error
}

func (e *kindError) Error() string { return e.err.Error() }
func (e *kindError) Unwrap() error { return e.err }

// refused tells what the client library makes plain text of when it connects.
func refused(err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "auth failed with code"), strings.Contains(text, "no supported auth mechanism"):
		return &kindError{driver.Denied, err}
	case strings.Contains(text, "unexpected protocol version 0.9.1"):
		return &driver.ProtocolError{Protocol: protocol.Name, Err: fmt.Errorf("it speaks AMQP 0-9-1, for which the scheme is rabbitmq: %w", err)}
	case strings.Contains(text, "unexpected protocol"), strings.Contains(text, "invalid protoHeader"):
		return &driver.ProtocolError{Protocol: protocol.Name, Err: err}
	}
	return err
}

// errLost is what a settlement gives of a message whose link is gone.
var errLost = &kindError{driver.Disconnected, errors.New("the link that the message came on is gone: the broker delivers it again, unless the queue is gone too")}

var errSettled = &kindError{driver.Rejected, errors.New("the message is settled already")}

// outcome is the error in what the broker has made of a message. That an exchange has no queue for it is none.
func outcome(state amqp.DeliveryState, exchange bool) error {
	switch state := state.(type) {
	case *amqp.StateAccepted:
		return nil
	case *amqp.StateRejected:
		if state.Error != nil {
			return fmt.Errorf("the broker rejected the message: %w", state.Error)
		}
		return &kindError{driver.Rejected, errors.New("the broker rejected the message, and did not say why")}
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

// conditions are what a broker's error conditions mean.
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

// notPermitted is in what Artemis says of a right that a user lacks, also where its condition is another.
const notPermitted = "does not have permission="

// noAddress is the code of Artemis's message that an address does not exist, whose condition is "failed".
const noAddress = "AMQ119002"

// classify returns the kind of an error of the client library or of the server.
func classify(err error) driver.Kind {
	var known *kindError
	var server *amqp.Error
	switch {
	case errors.As(err, &known):
		return known.kind
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

// closedBelow reports whether a link, its session or its connection is gone.
func closedBelow(err error) bool {
	return errors.As(err, new(*amqp.LinkError)) || errors.As(err, new(*amqp.SessionError)) || errors.As(err, new(*amqp.ConnError))
}
