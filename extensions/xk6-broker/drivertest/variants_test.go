package drivertest_test

import (
	"context"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

// variant is the correct driver with one thing broken, and the tests of the kit that must notice. None are broken where
// fails is empty: then the whole kit must pass.
type variant struct {
	name     string
	fails    []string
	config   memory.Config
	numbers  bool // bodies must be numbers
	claim    func(*driver.Features)
	options  []driver.Option // beside those that it has
	classify func(error) driver.Kind
	open     func(open openFunc) openFunc
	conn     func(fullConn) driver.Conn
	send     func(p driver.Producer, ctx context.Context, b driver.Batch, done driver.Done)
	request  func(driver.Requester, context.Context, driver.Message) (driver.Message, error)
	leave    func(p driver.Producer, ctx context.Context) error // the producer's Close
	consume  func(driver.ConsumerConfig) driver.ConsumerConfig
	receive  func() func(r driver.Consumer, ctx context.Context, b driver.Batch) (int, error) // one for each consumer
	place    func(m *driver.Message, is driver.Place) driver.Place
	settle   func(r driver.Consumer, ctx context.Context, b driver.Batch, o driver.Outcome) error
	quit     func(r *consumer, ctx context.Context) error // the consumer's Close
}

type openFunc = func(ctx context.Context, t driver.Target) (driver.Conn, error)

// fullConn has the optional verbs of a broker that is not bare.
type fullConn interface {
	driver.Conn
	driver.Admin
	driver.Backlogger
	driver.Prover
}

// variants are the correct drivers and the broken ones.
func variants() []variant {
	return slices.Concat(correct(), sending(), receiving(), settling(), connecting())
}

// correct drivers, which must pass.
func correct() []variant {
	return []variant{
		{name: "full"},
		{name: "log", config: memory.Config{Features: memory.Log()}},
		{name: "queue", config: memory.Config{Features: memory.Queue()}},
		{name: "subject", config: memory.Config{Features: memory.Subject(), Bare: true}},
		{name: "blocking", config: waiting()},
		{name: "sends only", config: memory.Config{Features: memory.Store()}},
		{name: "sends numbers only", config: memory.Config{Features: numbered()}, numbers: true},
		{name: "slow", config: slow(20 * time.Microsecond)},
	}
}

// waiting has a client that waits for the broker in each Send, of which eight may be under way at a time: whichever is through first.
func waiting() memory.Config {
	c := slow(20 * time.Microsecond)
	c.Features, c.Servers = memory.Full(), 8
	c.Features.Async, c.Features.Order = false, driver.Unordered
	return c
}

// numbered are the features of a store of numbers, which have no size of their own.
func numbered() driver.Features {
	f := memory.Store()
	f.MaxMessageBytes = 0
	return f
}

func slow(d time.Duration) memory.Config {
	return memory.Config{Service: func(int64) time.Duration { return d }}
}
