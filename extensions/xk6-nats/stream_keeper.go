package nats

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// keeper is the stream that keeps a producer's messages, as far as the producer knows it. A stream that has lost its leader, as without a
// quorum of its servers, answers as one that is not there: not at all.
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

// absent is the error of a message that nobody answered. Whether the stream is gone the server is asked meanwhile.
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

// close waits for what is asked.
func (k *keeper) close() { k.asks.Wait() }
