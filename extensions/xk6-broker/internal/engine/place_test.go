package engine

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
)

// asking counts the messages whose sender wants to know where the broker puts them.
type asking struct {
	driver.Conn
	asked, sent *atomic.Int64
}

func (a asking) NewProducer(ctx context.Context, c driver.ProducerConfig) (driver.Producer, error) {
	p, err := a.Conn.NewProducer(ctx, c)
	return askingProducer{p, a}, err
}

type askingProducer struct {
	driver.Producer
	asking
}

func (p askingProducer) Send(ctx context.Context, b driver.Batch, done driver.Done) {
	for i := range b {
		p.sent.Add(1)
		if b[i].Place != nil {
			p.asked.Add(1)
		}
	}
	p.Producer.Send(ctx, b, done)
}

func (p askingProducer) Close(ctx context.Context) error { return p.Producer.Close(ctx) }

// Receipts say where the messages are, and nothing else asks: not a loop, nor anybody of a driver that does not tell.
func TestOnlyReceiptsAskForPlaces(t *testing.T) {
	for _, tells := range []bool{true, false} {
		f := memory.Full()
		f.Receipts = tells
		b := newBench(t, memory.Config{Features: f})
		a := asking{b.conn, &atomic.Int64{}, &atomic.Int64{}}
		b.conn = a
		s := b.sender(100)
		if _, err := (Produce{Count: 50, Payload: payload.Spec{Size: payload.Fixed(100)}}).Run(t.Context(), []*Sender{s}); err != nil {
			t.Fatal(err)
		}
		if a.sent.Load() != 50 || a.asked.Load() != 0 {
			t.Errorf("tells: %t: a loop asked for %d places of %d messages", tells, a.asked.Load(), a.sent.Load())
		}
		got := make(chan []Receipt)
		batch := driver.Batch{{Body: make([]byte, 100)}, {Body: make([]byte, 100)}}
		go s.Send(t.Context(), batch, Timing{}, func(r []Receipt) { got <- r })
		for i, r := range <-got {
			want := driver.Place{}
			if tells {
				want.Position = driver.At(uint64(50 + i))
			}
			if r.Place != want || r.Err != nil {
				t.Errorf("tells: %t: receipt %d says %+v, %v", tells, i, r.Place, r.Err)
			}
		}
		b.finish()
	}
}
