package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// waiting has a call wait for a connection that is being made again, for as long as its time goes.
var waiting = grpc.WaitForReady(true)

func duration(d time.Duration) *durationpb.Duration { return durationpb.New(d) }

// delivery is a message that came and is not settled.
type delivery struct {
	message driver.Message // until it is handed over
	from    *server
	id      string
	handle  string // what settles it
	place   driver.Place
}

// poll receives up to so many messages of what a broker has, and waits for the first.
func (r *consumer) poll(ctx context.Context, s *server, known *presence, b home, most int) (some []*delivery, err error) {
	within, cancel := context.WithTimeout(ctx, r.cfg.Options.Duration("pollTime")+r.conn.options.Duration("requestTimeout"))
	defer cancel()
	if err := known.wait(within); err != nil {
		return nil, err
	}
	stream, err := s.ReceiveMessage(r.conn.servers.as(within, r.id), &v2.ReceiveMessageRequest{
		Group: r.conn.resource(r.group), MessageQueue: b.queue, FilterExpression: r.filter(), BatchSize: int32(most), //gosec:disable G115 -- a count, far below the limit
		InvisibleDuration: duration(r.cfg.Options.Duration("invisibleTime")),
	}, waiting)
	if err != nil {
		return nil, called(ctx, err)
	}
	for {
		part, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return some, nil
		case err != nil:
			return some, called(ctx, err)
		}
		received := driver.Now()
		if m := part.GetMessage(); m != nil {
			d, err := r.arrived(m, s, b, received)
			if err != nil {
				return some, err
			}
			some = append(some, d)
		}
		if answer := part.GetStatus(); answer != nil && answer.GetCode() != v2.Code_MESSAGE_NOT_FOUND {
			if err := check(answer); err != nil {
				return some, fmt.Errorf("receive: %w", err)
			}
		}
	}
}

// arrived gives what came the driver's form.
func (r *consumer) arrived(m *v2.Message, s *server, b home, received int64) (*delivery, error) {
	system := m.GetSystemProperties()
	d := &delivery{from: s, id: system.GetMessageId(), handle: system.GetReceiptHandle()}
	d.message = driver.Message{
		Topic: r.cfg.Topic, Received: received, Attempt: max(1, system.GetDeliveryAttempt()), Partition: r.route.partition(b.name, system.GetQueueId()),
	}
	if err := decode(m, &d.message); err != nil {
		return nil, fmt.Errorf("message %s: %w", d.id, err)
	}
	d.place = driver.Place{Partition: d.message.Partition, Timestamp: system.GetStoreTimestamp().AsTime().UnixNano()}
	if d.message.Attempt == 1 { // of others the broker tells where it keeps what is to be delivered again
		d.place.Position = driver.At(uint64(system.GetQueueOffset())) //gosec:disable G115 -- a position is not negative
	}
	return d, nil
}

// place is where the broker had a message when it came.
func place(m *driver.Message) driver.Place {
	d, ok := m.Token.(*delivery)
	if !ok {
		return driver.Place{}
	}
	return d.place
}
