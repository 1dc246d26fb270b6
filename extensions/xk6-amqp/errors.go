package amqp

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var (
	errNacked  = errors.New("the broker refused the message (basic.nack): the queue is full, or could not store it")
	errSettled = errors.New("the delivery is settled already")
	errLost    = errors.New("the delivery's channel is gone; the broker delivers the message again")
	errNoReply = errors.New("the message asks for no reply")

	errCertificate = errors.New("the server hung up after it received the client's certificate")
)

// rejectedError is a refusal by this driver: the broker would refuse too and close the channel.
type rejectedError string

func (e rejectedError) Error() string { return string(e) }

// blockedError is the broker's reason for connection.blocked.
type blockedError string

func (e blockedError) Error() string {
	return fmt.Sprintf("the broker blocks publishing connections: %s", string(e))
}

// classify returns the kind of an error of the client library, or of this package.
func classify(err error) driver.Kind {
	var (
		protocol *amqp.Error
		rejected rejectedError
		blocked  blockedError
	)
	switch {
	case errors.As(err, &protocol):
		return classifyCode(protocol.Code, protocol.Reason)
	case errors.As(err, &rejected), errors.Is(err, errNacked), errors.Is(err, errSettled), errors.Is(err, errNoReply):
		return driver.Rejected
	case errors.As(err, &blocked):
		return driver.Throttled
	case errors.Is(err, errLost):
		return driver.Disconnected
	case errors.Is(err, errCertificate):
		return driver.Denied
	}
	return driver.Unknown
}

// classifyCode returns the kind of a reply code of AMQP 0-9-1. The client library itself uses 501
// and 504 for a broken connection.
func classifyCode(code int, reason string) driver.Kind {
	switch code {
	case amqp.NotFound:
		if strings.Contains(reason, "is down or inaccessible") {
			return driver.Disconnected // the queue exists, on a node that does not answer
		}
		return driver.NotFound
	case amqp.NoRoute, amqp.NoConsumers, amqp.InvalidPath:
		return driver.NotFound
	case amqp.NotAllowed:
		if strings.Contains(reason, "not found") {
			return driver.NotFound // no such virtual host
		}
		return driver.Denied
	case amqp.AccessRefused:
		return driver.Denied
	case amqp.ContentTooLarge, amqp.PreconditionFailed, amqp.ResourceLocked:
		return driver.Rejected
	case amqp.ResourceError:
		return driver.Throttled
	case amqp.NotImplemented:
		return driver.Unsupported
	case amqp.ConnectionForced, amqp.FrameError, amqp.ChannelError, amqp.InternalError:
		return driver.Disconnected
	}
	return driver.Unknown
}
