package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// How a consumer asks for messages.
const (
	pullExpires   = 30 * time.Second // a request lives no longer than this, and is then made again
	pullHeartbeat = 2 * time.Second  // the server shows that it knows the request this often
	pullSilence   = 2 * pullHeartbeat
	pullCheck     = 500 * time.Millisecond
)

// attend repeats a request that the server has lost or could not take.
func (k *streamConsumer) attend(ctx context.Context) {
	check := time.NewTicker(pullCheck)
	defer check.Stop()
	began := k.remote.CachedInfo().Created
	for {
		select {
		case <-ctx.Done():
			return
		case <-check.C:
		}
		if !k.conn.nc.IsConnected() {
			continue
		}
		if now := driver.Now(); now-k.seen.Load() > int64(pullSilence) && k.requested.Load() > 0 {
			k.reset(now)
			k.inbox.Fail(k.silence(ctx))
		}
		if k.missing.Swap(false) {
			again, err := k.again(ctx, began)
			if err != nil {
				k.inbox.Fail(err)
				continue
			}
			began = again
		}
		if err := k.pull(); err != nil {
			k.inbox.Fail(err)
		}
	}
}

// again creates the server's consumer again if its stream was deleted and created since. It returns
// the time at which the server's consumer began.
func (k *streamConsumer) again(ctx context.Context, began time.Time) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, pullSilence)
	defer cancel()
	info := k.remote.CachedInfo()
	stream, err := k.js.Stream(ctx, info.Stream)
	if err != nil {
		return began, err
	}
	if !stream.CachedInfo().Created.After(began) {
		return began, k.exists(ctx)
	}
	config := info.Config
	config.Name, config.DeliverPolicy = info.Name, jetstream.DeliverAllPolicy
	remote, err := stream.CreateConsumer(ctx, config)
	if errors.Is(err, jetstream.ErrConsumerExists) { // of another member of the group
		remote, err = stream.Consumer(ctx, config.Name)
	}
	if err != nil {
		return began, err
	}
	return remote.CachedInfo().Created, nil
}

// silence returns the reason why the server does not confirm a request: the consumer may not exist.
func (k *streamConsumer) silence(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pullSilence)
	defer cancel()
	if err := k.exists(ctx); errors.Is(err, jetstream.ErrConsumerNotFound) {
		return err
	}
	return jetstream.ErrNoHeartbeat
}

// exists asks the server. The library's own call would change shared state.
func (k *streamConsumer) exists(ctx context.Context) error {
	info := k.remote.CachedInfo()
	_, err := k.js.Consumer(ctx, info.Stream, info.Name)
	return err
}

// reset drops the requests that the server has lost.
func (k *streamConsumer) reset(now int64) {
	k.seen.Store(now)
	k.mu.Lock()
	k.taken -= int(k.requested.Swap(0))
	k.mu.Unlock()
}

// pull asks for as many messages as there is room for, if that is worth a request.
func (k *streamConsumer) pull() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	room := k.prefetch - k.taken
	if k.closed || room <= 0 || (room < (k.prefetch+1)/2 && k.requested.Load() > 0) {
		return nil
	}
	request := fmt.Appendf(nil, `{"batch":%d,"expires":%d,"idle_heartbeat":%d}`, room, pullExpires, pullHeartbeat)
	k.taken += room
	if k.requested.Add(int64(room)) == int64(room) {
		k.seen.Store(driver.Now())
	}
	if err := k.conn.nc.PublishRequest(k.next, k.sub.Subject, request); err != nil {
		k.requested.Add(-int64(room))
		k.taken -= room
		return err
	}
	return nil
}

// deliver is nats.go's callback.
func (k *streamConsumer) deliver(msg *nats.Msg) {
	at := driver.Now()
	k.seen.Store(at)
	if !strings.HasPrefix(msg.Reply, "$JS.ACK.") {
		k.status(msg)
		return
	}
	k.count()
	k.inbox.Put(delivery{msg, at})
}

// count moves one message from the requested to the received ones. Their sum stays.
func (k *streamConsumer) count() {
	for {
		requested := k.requested.Load()
		if requested <= 0 {
			break // it comes after its request was forgotten
		}
		if k.requested.CompareAndSwap(requested, requested-1) {
			return
		}
	}
	k.mu.Lock()
	k.taken++
	k.mu.Unlock()
}

// status handles the end of a request, a heartbeat, or a refusal.
func (k *streamConsumer) status(msg *nats.Msg) {
	code, text := msg.Header.Get("Status"), msg.Header.Get("Description")
	switch {
	case code == "100": // alive
		return
	case code == "503":
		k.missing.Store(true)
		k.refused(nats.ErrNoResponders)
		return
	case text == "Consumer Deleted":
		k.missing.Store(true)
		k.refused(jetstream.ErrConsumerDeleted)
		return
	case text == "Leadership Change":
		k.refused(jetstream.ErrConsumerLeadershipChanged)
		return
	case text == "Server Shutdown":
		k.refused(jetstream.ErrServerShutdown)
		return
	}
	left, err := strconv.Atoi(msg.Header.Get("Nats-Pending-Messages"))
	if err != nil {
		k.refused(fmt.Errorf("the server ends a request for messages: %s %s", code, text))
		return
	}
	k.forget(left)
	if err := k.pull(); err != nil {
		k.inbox.Fail(err)
	}
}

// forget is for a request that ended without the last of its messages.
func (k *streamConsumer) forget(left int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	left = min(left, int(k.requested.Load())) // not more than a reset has left of it
	k.requested.Add(-int64(left))
	k.taken -= left
}

// refused makes Receive return err; attend asks again, not at once.
func (k *streamConsumer) refused(err error) {
	k.reset(driver.Now())
	k.inbox.Fail(err)
}

func (k *streamConsumer) lost(err error) {
	k.reset(driver.Now())
	k.inbox.Fail(fmt.Errorf("%w: %w", nats.ErrDisconnected, err))
	if k.confirms != nil {
		k.confirms.fail(nats.ErrDisconnected)
	}
}

func (k *streamConsumer) regained() {
	k.reset(driver.Now())
	if err := k.pull(); err != nil {
		k.inbox.Fail(err)
	}
}

func (k *streamConsumer) failed(sub *nats.Subscription, err error) {
	if sub == k.sub || denies(err, "Subscription", k.sub.Subject) || denies(err, "Publish", k.next) {
		k.inbox.Fail(err)
	}
}
