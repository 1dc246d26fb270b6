package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Scripts make each step atomic, so that no two consumers have one message. Their keys are the list
// and the set of consumers.
const (
	// ARGV: the prefixes of the other keys.
	scriptRecover = `
for _, name in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  if name ~= '' and redis.call('EXISTS', ARGV[1] .. name) == 0 then
    while redis.call('LMOVE', ARGV[2] .. name, KEYS[1], 'RIGHT', 'LEFT') do end
    redis.call('SREM', KEYS[2], name)
  end
end
return 0`
	// ARGV: the elements, the last first. KEYS[3] is the consumer's list.
	scriptRequeue = `
local n = 0
for _, element in ipairs(ARGV) do
  if redis.call('LREM', KEYS[3], 1, element) == 1 then
    redis.call('LPUSH', KEYS[1], element)
    n = n + 1
  end
end
return n`
	// ARGV: the consumer's name. KEYS[3] is its list, KEYS[4] its sign of life.
	scriptLeave = `
while redis.call('LMOVE', KEYS[3], KEYS[1], 'RIGHT', 'LEFT') do end
redis.call('SREM', KEYS[2], ARGV[1])
redis.call('DEL', KEYS[4])
return 0`
)

// listConsumer moves messages to a list of its own until they are settled.
type listConsumer struct {
	*intake
	client redis.UniversalClient // for what is not measured
	keys   listKeys
	me     string
	lease  time.Duration
	in     *link // blocks in moves
	out    *link // settles

	burst  int   // how many to ask for: about twice as many as there were last
	reader *wire // what was last read from; Receive's
	living sync.WaitGroup
	stop   context.CancelFunc
}

// NewConsumer begins to take messages from a list, and makes itself known to the other consumers.
func (c listConn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	if config.Group != "" {
		return nil, fmt.Errorf("groups: %w", errors.ErrUnsupported)
	}
	if config.Start != driver.StartEarliest {
		return nil, fmt.Errorf("start %v: %w", config.Start, errors.ErrUnsupported)
	}
	s := &listConsumer{
		intake: newIntake(
			config.Prefetch, true,
		), client: c.client, keys: keysOf(config.Topic), me: c.name + "-" + rand.Text(),
		lease: config.Options.Duration("lease"), in: c.link(config.Topic, block), out: c.link(config.Topic, 0), burst: 1,
	}
	err := s.live(ctx)
	if err == nil {
		err = s.ask(ctx)
	}
	if err != nil {
		_ = s.in.end(ctx)
		_ = s.out.end(ctx)
		return nil, err
	}
	var life context.Context
	life, s.stop = context.WithCancel(context.Background())
	s.living.Go(func() { s.stayAlive(life) })
	return s, nil
}

func (s *listConsumer) processing() string { return s.keys.processing + s.me }

// live refreshes this consumer's key, and takes the messages of consumers whose keys expired.
func (s *listConsumer) live(ctx context.Context) error {
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, s.keys.alive+s.me, "1", s.lease)
		p.SAdd(ctx, s.keys.members, s.me)
		p.Eval(ctx, scriptRecover, []string{s.keys.list, s.keys.members}, s.keys.alive, s.keys.processing)
		return nil
	})
	return err
}

func (s *listConsumer) stayAlive(ctx context.Context) {
	tick := time.NewTicker(s.lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.live(ctx) // what goes wrong here goes wrong in Receive too, and is told there
		case <-ctx.Done():
			return
		}
	}
}

// Receive implements [driver.Consumer].
func (s *listConsumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	return s.receive(ctx, b, s.ask)
}

// ask sends a request for more if there is none, over a new connection if needed.
func (s *listConsumer) ask(ctx context.Context) error {
	w, err := s.in.Get(ctx)
	if err != nil {
		return err
	}
	if w != s.reader {
		if s.reader != nil {
			<-s.reader.finished // it may still have been giving us what it had read
			if err := s.recoverLost(ctx); err != nil {
				return err
			}
		}
		s.reader = w
	}
	return s.move(w)
}

// more asks for more if the connection is usable.
func (s *listConsumer) more() {
	if w := s.in.current(); w != nil {
		_ = s.move(w) // an error comes again with the next ask
	}
}

func (s *listConsumer) move(w *wire) error {
	n := s.begin()
	if n == 0 {
		return nil
	}
	if err := w.put(&moving{listConsumer: s, count: min(n, s.burst)}); err != nil {
		s.finish(nil)
		return err
	}
	return nil
}

// moving is one BLMOVE, which waits for the first message, and some LMOVE, which do not wait.
type moving struct {
	*listConsumer
	count int
	some  []*delivery // read and not yet given to the inbox
	got   int
	err   error // the first
}

func (x *moving) encode(b []byte) ([]byte, int) {
	seconds := strconv.FormatFloat(block.Seconds(), 'f', -1, 64)
	b = appendCommand(b, "BLMOVE", x.keys.list, x.processing(), "LEFT", "RIGHT", seconds)
	for range x.count - 1 {
		b = appendCommand(b, "LMOVE", x.keys.list, x.processing(), "LEFT", "RIGHT")
	}
	return b, x.count
}

func (x *moving) read(r reader, i int) error {
	now := driver.Now()
	body, err := r.bulk()
	if err != nil && !answered(err) {
		return err // and end follows
	}
	if body != nil {
		x.got++
		x.some = append(x.some, x.delivery(body, now))
	}
	if x.err == nil {
		x.err = err
	}
	if last := i == x.count-1; !last {
		if r.Buffered() == 0 && len(x.some) > 0 { // the rest is still on its way
			x.put(x.some...)
			x.some = x.some[:0]
		}
		return err
	}
	x.burst = max(1, 2*x.got)
	x.end(i, x.err)
	if x.err == nil {
		x.more()
	}
	return err
}

func (x *moving) end(_ int, err error) {
	if len(x.some) > 0 {
		x.put(x.some...)
		x.some = nil
	}
	x.finish(err)
}

func (s *listConsumer) delivery(body []byte, now int64) *delivery {
	return &delivery{raw: body, message: driver.Message{Topic: s.keys.list, Body: body, Received: now}}
}

// recoverLost receives the messages that the server moved over a broken connection.
func (s *listConsumer) recoverLost(ctx context.Context) error {
	here := map[string]int{}
	for _, d := range s.here() {
		here[string(d.raw)]++
	}
	all, err := s.client.LRange(ctx, s.processing(), 0, -1).Result()
	for _, body := range all {
		if here[body]--; here[body] < 0 {
			s.put(s.delivery([]byte(body), driver.Now()))
		}
	}
	return err
}

// Close gives back unsettled messages to the head of the list, and leaves.
func (s *listConsumer) Close(ctx context.Context) error {
	if !s.shut() {
		return nil
	}
	s.stop()
	s.living.Wait()
	err := s.in.unblock(ctx)
	if err == nil {
		keys := []string{s.keys.list, s.keys.members, s.processing(), s.keys.alive + s.me}
		err = s.client.Eval(ctx, scriptLeave, keys, s.me).
			Err()
	}
	return errors.Join(err, s.out.close(ctx))
}
