package kurrentdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/streams"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// follower reads a stream by a catch-up subscription. It keeps its position and continues there
// when it connects again.
type follower struct {
	*consumer
	room  *inbox.Room
	after *uint64 // the revision of the last event that arrived; nil to begin with the first
}

func (c *conn) newFollower(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	r := &follower{room: inbox.NewRoom(cfg.Prefetch)}
	r.consumer = c.newConsumer(cfg, func(b driver.Batch, deliveries []*delivery) {
		hand(b, deliveries)
		r.room.Give(len(deliveries))
	})
	if cfg.Start == driver.StartNew { // after the present last event: the server's "end" may be later
		event, err := c.last(ctx, cfg.Topic)
		if err != nil {
			r.stop()
			return nil, err
		}
		if event != nil {
			last := event.GetStreamRevision()
			r.after = &last
		}
	}
	if err := r.begin(ctx, r.open); err != nil {
		return nil, err
	}
	return r, nil
}

// catchUp is one catch-up subscription.
type catchUp struct {
	r      *follower
	stream streams.Streams_ReadClient
	cancel context.CancelFunc
}

func (r *follower) open(ctx context.Context) (feed, error) {
	f := &catchUp{r: r}
	var err error
	f.cancel, err = r.conn.stream(ctx, r.life, func(ctx context.Context) error {
		request := reading(r.cfg.Topic)
		request.Options.CountOption = &streams.ReadReq_Options_Subscription{
			Subscription: &streams.ReadReq_Options_SubscriptionOptions{},
		}
		if from := request.Options.GetStream(); r.after == nil {
			from.RevisionOption = &streams.ReadReq_Options_StreamOptions_Start{Start: &shared.Empty{}}
		} else {
			from.RevisionOption = &streams.ReadReq_Options_StreamOptions_Revision{Revision: *r.after}
		}
		var err error
		if f.stream, err = r.conn.events.Read(ctx, request); err != nil {
			return answered(err, nil)
		}
		part, err := f.stream.Recv()
		if err != nil {
			return answered(err, f.stream.Trailer())
		}
		if part.GetConfirmation() == nil {
			return errUnconfirmed
		}
		return nil
	})
	return f, err
}

// read receives while there is room. gRPC's flow control holds back the rest.
func (f *catchUp) read() error {
	for {
		if _, err := f.r.room.Reserve(f.r.life, 1, 1); err != nil {
			return err
		}
		part, err := f.stream.Recv()
		received := driver.Now()
		if err != nil {
			f.r.room.Give(1)
			return answered(err, f.stream.Trailer())
		}
		event := part.GetEvent().GetEvent()
		if event == nil { // a notice: it has caught up, or fell behind
			f.r.room.Give(1)
			continue
		}
		d := arrived(event, event, f.r.cfg.Topic, received)
		d.message.Attempt = 1
		f.r.after = &d.revision
		f.r.in.Put(d)
	}
}

func (f *catchUp) end() { f.cancel() }

// Settle does nothing: the server stores no position.
func (r *follower) Settle(_ context.Context, _ driver.Batch, o driver.Outcome) error {
	switch {
	case r.life.Err() != nil:
		return driver.ErrClosed
	case o != driver.Ack:
		return fmt.Errorf("%v without a group: %w", o, errors.ErrUnsupported)
	}
	return nil
}

// Close implements [driver.Consumer].
func (r *follower) Close(context.Context) error {
	r.in.Close()
	r.stop()
	r.running.Wait()
	return nil
}
