package nats

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// keeper is the producer's state of its stream. A stream without a leader does not answer, like an
// absent one.
type keeper struct {
	js      jetstream.JetStream
	subject string

	there  atomic.Bool // it has kept messages, and nobody has said since that it is gone
	asking atomic.Bool
	asks   sync.WaitGroup
}

// whetherGone bounds the question whether a stream is there.
const whetherGone = 2 * time.Second

// kept notes that it has kept a message.
func (k *keeper) kept() {
	if !k.there.Load() {
		k.there.Store(true)
	}
}

// absent returns the error of a message without responders. Meanwhile the server is asked whether
// the stream exists.
func (k *keeper) absent(err error) error {
	if !k.there.Load() {
		return err
	}
	if k.asking.CompareAndSwap(false, true) {
		k.asks.Go(func() {
			defer k.asking.Store(false)
			ctx, cancel := context.WithTimeout(context.Background(), whetherGone)
			defer cancel()
			if _, err := k.js.StreamNameBySubject(ctx, k.subject); errors.Is(err, jetstream.ErrStreamNotFound) {
				k.there.Store(false)
			}
		})
	}
	return errNoLeader
}

// close waits for the requests under way.
func (k *keeper) close() { k.asks.Wait() }
