package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

// mailbox reads the topic to which replies come. The topic is in no account of the test.
type mailbox struct {
	topic string

	address  *driver.Address
	conn     driver.Conn
	made     bool // by this process, which deletes it
	consumer driver.Consumer
	stop     context.CancelFunc
	reading  sync.WaitGroup
}

// besideTopic names a topic beside another one: in the same place, where a name says where its topic is, and with the same ending.
func besideTopic(topic, name string) string {
	place := strings.LastIndexByte(topic, '/') + 1
	first, ending := topic[place:], ""
	if dot := strings.IndexByte(first, '.'); dot >= 0 {
		first, ending = first[:dot], first[dot:]
	}
	return topic[:place] + strings.TrimLeft(first+"-"+name, "-") + ending
}

// makeTopic creates a topic, where topics are created, and tells whether it is there to be deleted.
func makeTopic(ctx context.Context, conn driver.Conn, a *driver.Address, topic string) (made bool, err error) {
	admin, ok := conn.(driver.Admin)
	if !ok {
		return false, nil
	}
	options, err := a.Resolve(driver.OnTopic, nil)
	if err != nil {
		return false, err
	}
	err = admin.CreateTopic(ctx, driver.TopicSpec{Name: topic, Partitions: 1, Replicas: 1, Options: options})
	if errors.Is(err, errors.ErrUnsupported) {
		return false, nil
	}
	return err == nil, err
}

// deleteTopic removes a topic, if it is there.
func deleteTopic(ctx context.Context, conn driver.Conn, a *driver.Address, topic string) error {
	admin, ok := conn.(driver.Admin)
	if !ok {
		return nil
	}
	err := admin.DeleteTopic(ctx, topic)
	if err == nil || errors.Is(err, errors.ErrUnsupported) || a.Driver.KindOf(err) == driver.NotFound {
		return nil
	}
	return err
}

// openMailbox subscribes to a topic, which is deleted when the box is closed if it was made for that.
func openMailbox(ctx context.Context, conn driver.Conn, a *driver.Address, topic string, made bool) (*mailbox, error) {
	options, err := a.Resolve(driver.OnConsumer, nil)
	if err != nil {
		return nil, err
	}
	start := driver.StartNew
	if !a.Driver.Features.Start.Has(start) {
		start = driver.StartEarliest
	}
	b := &mailbox{topic: topic, address: a, conn: conn, made: made}
	b.consumer, err = conn.NewConsumer(ctx, driver.ConsumerConfig{Topic: topic, Prefetch: mailPrefetch, Start: start, Options: options})
	if err != nil {
		if made {
			err = errors.Join(err, deleteTopic(ctx, conn, a, topic))
		}
		return nil, err
	}
	return b, nil
}

const (
	mailPrefetch   = 1000 // messages that may be with the reader, which takes each as it comes
	mailBatch      = 256
	mailErrorPause = 10 * time.Millisecond // keeps the reader from spinning while the broker is away
)

// read begins to hand over what comes, message by message, until the box is closed. What take gets is its own; failed is told what went wrong.
func (b *mailbox) read(take func(*driver.Message), failed func(op string, err error)) {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.reading.Go(func() { b.run(ctx, take, failed) })
}

func (b *mailbox) run(ctx context.Context, take func(*driver.Message), failed func(op string, err error)) {
	in := make(driver.Batch, mailBatch)
	for ctx.Err() == nil {
		n, err := b.consumer.Receive(ctx, in)
		if err != nil && n == 0 {
			if ctx.Err() != nil || errors.Is(err, driver.ErrClosed) {
				return
			}
			failed("receive", err)
			if machine.Timer(ctx, driver.Now()+int64(mailErrorPause)) != nil {
				return
			}
			continue
		}
		for i := range n {
			take(&in[i])
		}
		if b.address.Driver.Features.Settle.Has(driver.Ack) {
			if err := b.consumer.Settle(ctx, in[:n], driver.Ack); err != nil && ctx.Err() == nil {
				failed("ack", err)
			}
		}
		clear(in[:n]) // whoever took it has it, and nobody else needs to keep it
	}
}

// close ends reading, leaves, and deletes the topic if it was made for the box.
func (b *mailbox) close(ctx context.Context) error {
	if b.stop != nil {
		b.stop()
		b.reading.Wait()
	}
	err := b.consumer.Close(ctx)
	if !b.made {
		return err
	}
	b.made = false
	if gone := deleteTopic(ctx, b.conn, b.address, b.topic); gone != nil {
		err = errors.Join(err, fmt.Errorf("topic %s is still there: %w", b.topic, gone))
	}
	return err
}
