package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// Replies are where the replies to requests come, of a driver whose broker has no request and reply of its own: a topic that one consumer
// reads, for all who ask through one connection. Its messages are in nobody's account but the requests'.
type Replies struct {
	run      *Run
	driver   *driver.Driver
	topic    string
	made     bool // by this run, which deletes it
	conn     driver.Conn
	consumer driver.Consumer
	test     string  // what the identifiers of all requests of the test begin with, whichever process sent them
	prefix   string  // of the identifiers of these requests, and of no others
	series   *Series // for what is nobody's request
	stop     context.CancelFunc
	reading  sync.WaitGroup

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan<- answer // by number: who waits for the reply
	overdue map[uint64]*Series       // requests that were given up; a reply may come yet
}

// answer is what becomes of a request: the reply, or why there is none.
type answer struct {
	reply driver.Message
	err   error
}

// Replies gives those of a connection, open: to a topic of that name, or to one of their own where that is empty.
func (r *Run) Replies(ctx context.Context, e Endpoint, asked, named string, series *Series) (*Replies, error) {
	one, err := r.connections.of(e)
	if err != nil {
		return nil, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	words := asked + " " + named
	if there, ok := one.replies[words]; ok {
		return there, nil
	}
	conn, err := one.connect(ctx, e)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	opened, err := r.openReplies(ctx, conn, e.Address, asked, named, series)
	if err != nil {
		return nil, e.Address.Driver.Wrap("open replies", err)
	}
	one.replies[words] = opened
	return opened, nil
}

func (r *Run) openReplies(ctx context.Context, conn driver.Conn, a *driver.Address, asked, named string, series *Series) (*Replies, error) {
	number := r.desks.Add(1)
	test := fmt.Sprintf("%08x-", r.ID)
	p := &Replies{
		run: r, driver: a.Driver, topic: named, conn: conn, series: series, test: test, prefix: fmt.Sprintf("%s%08x-%x-", test, r.instance, number),
		waiting: map[uint64]chan<- answer{}, overdue: map[uint64]*Series{},
	}
	if named == "" {
		p.topic = replyTopic(asked, fmt.Sprintf("replies-%08x-%d", r.instance, number))
		if err := p.make(ctx, a); err != nil {
			return nil, err
		}
	}
	if len(p.topic) > maxReplyTo {
		return nil, fmt.Errorf("the name of topic %.40q... is too long", p.topic)
	}
	if err := p.subscribe(ctx, a); err != nil {
		return nil, errors.Join(err, p.remove(ctx))
	}
	reading, stop := context.WithCancel(context.Background())
	p.stop = stop
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished { // nobody would close it
		stop()
		return nil, errors.Join(ErrEnded, p.consumer.Close(ctx), p.remove(ctx))
	}
	r.replies = append(r.replies, p)
	p.reading.Go(func() { p.read(reading) })
	return p, nil
}

// replyTopic names a topic beside another one: in the same place, where a name says where its topic is, and with the same ending.
func replyTopic(of, name string) string {
	place := strings.LastIndexByte(of, '/') + 1
	first, ending := of[place:], ""
	if dot := strings.IndexByte(first, '.'); dot >= 0 {
		first, ending = first[:dot], first[dot:]
	}
	return of[:place] + strings.TrimLeft(first+"-"+name, "-") + ending
}

// make creates the topic, where topics are created.
func (p *Replies) make(ctx context.Context, a *driver.Address) error {
	admin, ok := p.conn.(driver.Admin)
	if !ok {
		return nil
	}
	options, err := a.Resolve(driver.OnTopic, nil)
	if err != nil {
		return err
	}
	err = admin.CreateTopic(ctx, driver.TopicSpec{Name: p.topic, Partitions: 1, Replicas: 1, Options: options})
	p.made = err == nil
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf(`a topic for replies, %s, could not be created: the producer's option "replyTopic" names one that is there: %w`, p.topic, err)
	}
	return nil
}

func (p *Replies) subscribe(ctx context.Context, a *driver.Address) error {
	options, err := a.Resolve(driver.OnConsumer, nil)
	if err != nil {
		return err
	}
	start := driver.StartNew
	if !p.driver.Features.Start.Has(start) {
		start = driver.StartEarliest
	}
	p.consumer, err = p.conn.NewConsumer(ctx, driver.ConsumerConfig{Topic: p.topic, Prefetch: repliesPrefetch, Start: start, Options: options})
	if err != nil {
		return fmt.Errorf("the topic for replies, %s, could not be read: %w", p.topic, err)
	}
	return nil
}

// repliesPrefetch is how many replies may be with their consumer, which takes each as it comes.
const repliesPrefetch = 1000

// read hands replies over until it is stopped.
func (p *Replies) read(ctx context.Context) {
	b := make(driver.Batch, drainBatch)
	for ctx.Err() == nil {
		n, err := p.consumer.Receive(ctx, b)
		if err != nil && n == 0 {
			if ctx.Err() != nil || errors.Is(err, driver.ErrClosed) {
				return
			}
			p.series.fail("receive", p.driver.KindOf(err))
			if p.run.sleep(ctx, driver.Now()+int64(errorPause)) != nil {
				return
			}
			continue
		}
		for i := range n {
			p.take(&b[i])
		}
		if p.driver.Features.Settle.Has(driver.Ack) {
			if err := p.consumer.Settle(ctx, b[:n], driver.Ack); err != nil && ctx.Err() == nil {
				p.series.fail("ack", p.driver.KindOf(err))
			}
		}
		clear(b[:n]) // whoever asked has it, and nobody else needs to keep it
	}
}

// take hands a reply to who waits for it, or counts what else it is.
func (p *Replies) take(m *driver.Message) {
	if !p.driver.Features.Headers {
		unwrap(p.driver, m)
	}
	id, _ := correlation(p.driver, m)
	number, ours := p.numberOf(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if to, ok := p.waiting[number]; ok && ours {
		delete(p.waiting, number)
		to <- answer{reply: *m} // it has room for it
		return
	}
	switch late, ok := p.overdue[number]; {
	case !ours && bytes.HasPrefix(id, []byte(p.test)) && !bytes.HasPrefix(id, []byte(p.prefix)): // of others who read the same topic
	case !ours || number >= p.next:
		p.series.add(metric.StrayReplies, 1)
	case ok:
		delete(p.overdue, number)
		late.add(metric.LateReplies, 1)
	case m.Attempt > 1: // the broker gives it once more, and nobody has answered again
	default:
		p.series.add(metric.DuplicateReplies, 1)
	}
}

// numberOf reads the identifier of one of these requests.
func (p *Replies) numberOf(id []byte) (uint64, bool) {
	if len(id) <= len(p.prefix) || string(id[:len(p.prefix)]) != p.prefix {
		return 0, false
	}
	n, err := strconv.ParseUint(string(id[len(p.prefix):]), 16, 64)
	return n, err == nil
}

// expect makes room for the reply to a request, which goes by that identifier.
func (p *Replies) expect() (number uint64, id string, answers chan answer) {
	answers = make(chan answer, 2) // the reply, and that the request was not confirmed
	p.mu.Lock()
	defer p.mu.Unlock()
	number = p.next
	p.next++
	p.waiting[number] = answers
	return number, p.prefix + strconv.FormatUint(number, 16), answers
}

// giveUp waits for the reply no longer. It tells whether that was in time: else the reply is there.
func (p *Replies) giveUp(number uint64, series *Series) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, waits := p.waiting[number]
	if waits {
		delete(p.waiting, number)
		p.overdue[number] = series
	}
	return waits
}

// forget takes a request back that was never sent.
func (p *Replies) forget(number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, number)
}

// byTopics asks by way of two topics. The confirmation of a request that is answered is waited for by nobody, and may come later.
func (r *request) byTopics(ctx, waiting context.Context, m *driver.Message, at Timing, replies *Replies) (driver.Message, error) {
	s := r.sender
	number, id, answers := replies.expect()
	if err := r.prepare(m, id, replies.topic); err != nil {
		replies.forget(number)
		return driver.Message{}, refused(s.pub.driver, "request", err)
	}
	if err := r.admit(waiting, &at); err != nil {
		replies.forget(number)
		r.due = at.Due
		if now := driver.Now(); r.due == 0 {
			r.due, r.loop = now, metric.Closed
		}
		return driver.Message{}, r.failed(context.Background(), driver.Now(), err)
	}
	r.caller = s.call()
	r.begin(m, at)
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	keep := context.AfterFunc(ctx, cancel)
	r.send(sending, *m, func(err error) {
		cancel()
		if err != nil {
			answers <- answer{err: err} // it has room for it
		}
	})
	var a answer
	select {
	case a = <-answers:
	case <-waiting.Done():
		a.err = waiting.Err()
	}
	now := driver.Now()
	if a.err != nil && !replies.giveUp(number, r.series) {
		for a.err != nil { // the reply has come at the same time
			a = <-answers
		}
	}
	if a.err != nil {
		return driver.Message{}, r.failed(waiting, now, a.err)
	}
	keep()
	r.answered(now, &a.reply)
	return a.reply, nil
}

// prepare makes a request of a message, with room for its stamp.
func (r *request) prepare(m *driver.Message, id, replyTo string) error {
	s := r.sender
	if err := correlate(s.pub.driver, m, id, replyTo, s.stamp.Front()); err != nil {
		return err
	}
	if s.pub.driver.Features.Headers {
		attachStamp(m, s.stamp)
	}
	return nil
}

// admit waits for a place in the window and for a worker, which excuses who asks.
func (r *request) admit(ctx context.Context, at *Timing) error {
	s := r.sender
	_, waited, err := s.admit(ctx, 1)
	if err == nil {
		var busy bool
		if busy, err = s.hire(ctx); err != nil {
			s.pub.window.release(1)
		}
		waited = waited || busy
	}
	if waited {
		at.Free = driver.Now()
	}
	return err
}

// send hands the request over, and tells what became of that.
func (r *request) send(ctx context.Context, m driver.Message, done func(error)) {
	s := r.sender
	hand := func() {
		s.pub.producer.Send(ctx, driver.Batch{m}, func(_ int, err error) {
			if err == nil {
				r.confirmed()
			} else {
				s.pub.topic.failed.Add(1)
			}
			s.hangUp(r.caller)
			s.pub.window.release(1)
			done(err)
		})
	}
	if s.pub.workers == nil {
		hand()
		return
	}
	go func() { // the reply need not wait for the confirmation
		defer s.pub.workers.release(1)
		hand()
	}()
}

// close waits for replies that are still to come, as long as any do, and lets go of everything.
func (p *Replies) close(ctx context.Context, d Drain) error {
	reading, cancel := d.reading(ctx, d.Limit)
	defer cancel()
	for left, until := p.unanswered(), driver.Now()+int64(restTimeout); left > 0 && driver.Now() < until && !p.run.hurries.Load(); {
		if p.run.sleep(reading, driver.Now()+int64(drainPoll)) != nil {
			break
		}
		if now := p.unanswered(); now != left {
			left, until = now, driver.Now()+int64(restTimeout)
		}
	}
	p.stop()
	p.reading.Wait()
	closing, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	return p.driver.Wrap("close replies", errors.Join(p.consumer.Close(closing), p.remove(closing)))
}

// unanswered is how many requests have had no reply.
func (p *Replies) unanswered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) + len(p.overdue)
}

// remove deletes the topic that the run has made.
func (p *Replies) remove(ctx context.Context) error {
	if !p.made {
		return nil
	}
	p.made = false
	admin, _ := p.conn.(driver.Admin)
	err := admin.DeleteTopic(ctx, p.topic)
	if err == nil || errors.Is(err, errors.ErrUnsupported) || p.driver.KindOf(err) == driver.NotFound {
		return nil
	}
	return fmt.Errorf("the topic for replies, %s, is still there: %w", p.topic, err)
}
