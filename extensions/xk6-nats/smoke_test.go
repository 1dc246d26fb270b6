package nats

import (
	"context"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func open(t testing.TB, url string, given map[string]any) (driver.Conn, *driver.Address) {
	t.Helper()
	a, err := driver.ParseURL(url, given)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := a.Open(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c, a
}

func values(t testing.TB, a *driver.Address, s driver.Scope) driver.Values {
	t.Helper()
	v, err := a.Resolve(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSmoke(t *testing.T) {
	for _, url := range []string{"embedded:", "embedded-nats:"} {
		t.Run(url, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			c, a := open(t, url, nil)
			if admin, ok := c.(driver.Admin); ok {
				if err := admin.CreateTopic(ctx, driver.TopicSpec{Name: "a.b", Partitions: 1, Replicas: 1, Options: values(t, a, driver.OnTopic)}); err != nil {
					t.Fatal(err)
				}
			}
			k, err := c.NewConsumer(ctx, driver.ConsumerConfig{Topic: "a.b", Group: "g", Prefetch: 100, Start: driver.StartNew, ConfirmSettle: a.Driver.Features.Settle != 0, Options: values(t, a, driver.OnConsumer)})
			if err != nil {
				t.Fatal(err)
			}
			p, err := c.NewProducer(ctx, driver.ProducerConfig{Topic: "a.b", Window: 100, Options: values(t, a, driver.OnProducer)})
			if err != nil {
				t.Fatal(err)
			}
			const total = 1000
			b := make(driver.Batch, total)
			for i := range b {
				b[i] = driver.Message{Body: []byte("hello"), Headers: []driver.Header{{Name: "x", Value: []byte("y")}}}
			}
			p.Send(ctx, b, func(i int, err error) {
				if err != nil {
					t.Error(i, err)
				}
			})
			if err := p.Close(ctx); err != nil {
				t.Fatal(err)
			}
			in := make(driver.Batch, 64)
			for got := 0; got < total; {
				n, err := k.Receive(ctx, in)
				if err != nil {
					t.Fatal(err)
				}
				got += n
				if string(in[0].Body) != "hello" || string(in[0].Headers[0].Value) != "y" {
					t.Fatalf("%+v", in[0])
				}
				if a.Driver.Features.Settle != 0 {
					if in[0].Attempt != 1 {
						t.Fatalf("%+v", in[0])
					}
					if err := k.Settle(ctx, in[:n], driver.Ack); err != nil {
						t.Fatal(err)
					}
				}
			}
			if b, ok := c.(driver.Backlogger); ok {
				if n, err := b.Backlog(ctx, "a.b", "g"); n != 0 || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := k.Close(ctx); err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", c.(driver.Informer).Info())
		})
	}
}
