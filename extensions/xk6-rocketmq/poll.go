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

// waiting makes a call wait for a connection until its context ends.
var waiting = grpc.WaitForReady(true)

func duration(d time.Duration) *durationpb.Duration { return durationpb.New(d) }

// poll receives up to most messages from a broker, and waits for the first.
func (r *consumer) poll(
	ctx context.Context, s *server, registered *presence, b home, most int,
) (some []*delivery, err error) {
	timeout := r.cfg.Options.Duration("pollTime") + r.conn.options.Duration("requestTimeout")
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := registered.wait(within); err != nil {
		return nil, err
	}
	stream, err := s.ReceiveMessage(r.conn.servers.as(within, r.id), &v2.ReceiveMessageRequest{
		Group: r.conn.resource(r.group), MessageQueue: b.queue, FilterExpression: r.filter(),
		BatchSize:         int32(most), //gosec:disable G115 -- a count, far below the limit
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

// arrived converts a message to the driver's form.
func (r *consumer) arrived(m *v2.Message, s *server, b home, received int64) (*delivery, error) {
	system := m.GetSystemProperties()
	d := &delivery{Handle: handle{from: s, id: system.GetMessageId(), receipt: system.GetReceiptHandle()}}
	d.Message = driver.Message{
		Topic: r.cfg.Topic, Received: received, Attempt: max(1, system.GetDeliveryAttempt()),
		Partition: r.route.partition(b.name, system.GetQueueId()),
	}
	if err := decode(m, &d.Message); err != nil {
		return nil, fmt.Errorf("message %s: %w", d.Handle.id, err)
	}
	stored := system.GetStoreTimestamp().AsTime().UnixNano()
	d.Handle.place = driver.Place{Partition: d.Message.Partition, Timestamp: stored}
	if d.Message.Attempt == 1 { // a redelivery has the position of its copy
		d.Handle.place.Position = driver.At(
			uint64(system.GetQueueOffset()),
		) //gosec:disable G115 -- a position is not negative
	}
	return d, nil
}

// place returns where the broker stored a message.
func place(m *driver.Message) driver.Place {
	d, ok := m.Token.(*delivery)
	if !ok {
		return driver.Place{}
	}
	return d.Handle.place
}
