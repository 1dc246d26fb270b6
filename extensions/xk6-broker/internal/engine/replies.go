package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Replies are where the replies to requests come, of a driver whose broker has no request and reply of its own: a topic that one consumer
// reads, for all who ask through one connection. Its messages are in nobody's account but the requests'.
type Replies struct {
	run    *Run
	driver *driver.Driver
	topic  string
	box    *mailbox
	test   string  // what the identifiers of all requests of the test begin with, whichever process sent them
	prefix string  // of the identifiers of these requests, and of no others
	series *Series // for what is nobody's request

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
		run: r, driver: a.Driver, topic: named, series: series, test: test, prefix: fmt.Sprintf("%s%08x-%x-", test, r.instance, number),
		waiting: map[uint64]chan<- answer{}, overdue: map[uint64]*Series{},
	}
	if named == "" {
		p.topic = besideTopic(asked, fmt.Sprintf("replies-%08x-%d", r.instance, number))
	}
	if len(p.topic) > maxReplyTo {
		return nil, fmt.Errorf("the name of topic %.40q... is too long", p.topic)
	}
	made := false
	if named == "" {
		var err error
		if made, err = makeTopic(ctx, conn, a, p.topic); err != nil {
			return nil, fmt.Errorf(`a topic for replies, %s, could not be created: the producer's option "replyTopic" names one that is there: %w`, p.topic, err)
		}
	}
	var err error
	if p.box, err = openMailbox(ctx, conn, a, p.topic, made); err != nil {
		return nil, fmt.Errorf("the topic for replies, %s, could not be read: %w", p.topic, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished { // nobody would close it
		return nil, errors.Join(ErrEnded, p.box.close(ctx))
	}
	r.replies = append(r.replies, p)
	p.box.read(p.take, func(op string, err error) { series.fail(op, p.driver.KindOf(err)) })
	return p, nil
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
		p.series.add(recording.StrayReplies, 1)
	case ok:
		delete(p.overdue, number)
		late.add(recording.LateReplies, 1)
	case m.Attempt > 1: // the broker gives it once more, and nobody has answered again
	default:
		p.series.add(recording.DuplicateReplies, 1)
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
			r.due, r.loop = now, recording.Closed
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
	_, waited, err := s.admit(ctx, 1, at.Due != 0)
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
	closing, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	return p.driver.Wrap("close replies", p.box.close(closing))
}

// unanswered is how many requests have had no reply.
func (p *Replies) unanswered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) + len(p.overdue)
}
