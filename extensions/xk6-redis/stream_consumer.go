package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// block is the longest wait of a read at the server.
const block = 2 * time.Second

// streamConsumer is a member of a group, or a reader without one.
type streamConsumer struct {
	*intake
	client redis.UniversalClient // for what is not measured
	config driver.ConsumerConfig
	me     string
	in     *link // blocks in reads
	out    *link // settles

	last     string // the last entry read, where there is no group
	orphaned bool   // the server said that there is no group; guarded by mu
	reader   *wire  // what was last read from; Receive's
	claiming sync.WaitGroup
	stop     context.CancelFunc
}

// NewConsumer joins a group, and creates it and the stream if needed, or begins to read.
func (c streamConn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	s := &streamConsumer{
		intake: newIntake(config.Prefetch, config.Group != ""), client: c.client, config: config,
		me: c.name + "-" + rand.Text(), in: c.link(config.Topic, block), out: c.link(config.Topic, 0), last: "0-0",
	}
	err := s.join(ctx)
	if err == nil {
		err = s.ask(ctx)
	}
	if err != nil {
		_ = s.in.close(ctx)
		_ = s.out.close(ctx)
		return nil, err
	}
	if s.grouped() {
		var life context.Context
		life, s.stop = context.WithCancel(context.Background())
		s.claiming.Go(func() { s.reclaim(life) })
	}
	return s, nil
}

func (s *streamConsumer) grouped() bool { return s.config.Group != "" }

// join makes the consumer see the next message.
func (s *streamConsumer) join(ctx context.Context) error {
	if s.grouped() {
		from := "$"
		if s.config.Start == driver.StartEarliest {
			from = "0"
		}
		return s.createGroup(ctx, from)
	}
	if s.config.Start == driver.StartEarliest {
		return nil
	}
	// "$" of XREAD would miss entries between two reads.
	info, err := s.client.XInfoStream(ctx, s.config.Topic).Result()
	if err != nil {
		if classify(err) == driver.NotFound {
			return nil
		}
		return err
	}
	s.last = info.LastGeneratedID
	return nil
}

func (s *streamConsumer) createGroup(ctx context.Context, from string) error {
	err := s.client.XGroupCreateMkStream(ctx, s.config.Topic, s.config.Group, from).Err()
	if err != nil && strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return nil
	}
	return err
}

// Receive implements [driver.Consumer].
func (s *streamConsumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	return s.receive(ctx, b, s.ask)
}

// ask sends a request for more if there is none, over a new connection if needed.
func (s *streamConsumer) ask(ctx context.Context) error {
	s.mu.Lock()
	orphaned := s.orphaned
	s.orphaned = false
	s.mu.Unlock()
	if orphaned { // its stream was deleted, or the server came back without it: all that there is now is new
		if err := s.createGroup(ctx, "0"); err != nil {
			return err
		}
	}
	w, err := s.in.Get(ctx)
	if err != nil {
		return err
	}
	if w != s.reader {
		if s.reader != nil && s.grouped() {
			<-s.reader.finished // it may still have been giving us what it had read
			if err := s.recoverLost(ctx); err != nil {
				s.note(err)
				return err
			}
		}
		s.reader = w
	}
	return s.read(w)
}

// more asks for more if the connection is usable.
func (s *streamConsumer) more() {
	if w := s.in.current(); w != nil {
		_ = s.read(w) // an error comes again with the next ask
	}
}

func (s *streamConsumer) read(w *wire) error {
	n := s.begin()
	if n == 0 {
		return nil
	}
	if err := w.put(&reading{streamConsumer: s, count: n}); err != nil {
		s.finish(nil)
		return err
	}
	return nil
}

// reading is one XREADGROUP or XREAD.
type reading struct {
	*streamConsumer
	count int
}

func (x *reading) encode(b []byte) ([]byte, int) {
	count, ms := strconv.Itoa(x.count), strconv.FormatInt(block.Milliseconds(), 10)
	if x.grouped() {
		return appendCommand(b, "XREADGROUP", "GROUP", x.config.Group, x.me, "COUNT", count, "BLOCK", ms,
			"STREAMS", x.config.Topic, ">"), 1
	}
	return appendCommand(b, "XREAD", "COUNT", count, "BLOCK", ms, "STREAMS", x.config.Topic, x.last), 1
}

func (x *reading) read(r reader, i int) error {
	err := x.parse(r)
	if err != nil && !answered(err) {
		return err // and end follows
	}
	x.end(i, err)
	if err == nil {
		x.more()
	}
	return err
}

func (x *reading) parse(r reader) error {
	n, err := r.array()
	if err != nil || n == -1 {
		return err
	}
	if n != 1 {
		return errProtocol
	}
	if err := r.arrayOf(2); err != nil {
		return err
	}
	if _, err := r.skip(); err != nil {
		return err
	}
	var some []*delivery
	err = r.entries(x.config.Topic, func(d *delivery) {
		if some = append(some, d); r.Buffered() == 0 { // the rest is still on its way
			x.put(some...)
			some = some[:0]
		}
		x.last = d.id
	})
	x.put(some...)
	return err
}

func (x *reading) end(_ int, err error) {
	x.note(err)
	x.finish(err)
}

// note records that the group does not exist.
func (s *streamConsumer) note(err error) {
	if err == nil || !strings.HasPrefix(err.Error(), "NOGROUP") {
		return
	}
	s.mu.Lock()
	s.orphaned = true
	s.mu.Unlock()
}

// Close leaves the group. Other members can take its unsettled messages at once.
func (s *streamConsumer) Close(ctx context.Context) error {
	if !s.shut() {
		return nil
	}
	if s.stop != nil {
		s.stop()
		s.claiming.Wait()
	}
	err := s.in.unblock(ctx)
	if s.grouped() && err == nil {
		err = s.giveBack(ctx)
	}
	return errors.Join(err, s.out.close(ctx))
}
