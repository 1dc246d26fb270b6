package peers

import (
	"context"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/clock"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/mail"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/skew"
)

// peer is another process. The lock of [Peers] is held where it is touched.
type peer struct {
	index    int
	instance uint32 // 0 until it has answered
	guess    uint32 // of its instance, until then
	twin     uint32
	rival    uint32 // another process of this one's number, that it talks with; 0 for none
	name     string
	anchor   clock.Anchor
	limits   skew.Limits
	echo     *echo // of its last note
	last     int64 // when that was heard
	told     int64 // when the last note that it has heard was sent
	points   map[string]int64
	lacked   string
	gone     bool // it has said that it leaves: it is answered that, and told nothing more
	kick     chan struct{}
}

// hurry has it told at once, if it is there.
func (of *peer) hurry() {
	if !of.gone {
		of.answer()
	}
}

func (of *peer) answer() {
	select {
	case of.kick <- struct{}{}:
	default:
	}
}

// offset is by how much its clock is ahead of this process's, in a time. On one machine both are tied to the same clock, which then tells
// exactly, unless the notes contradict that.
func (of *peer) offset(own clock.Anchor, from, to int64) (o skew.Offset, same, ok bool) {
	o, ok = of.limits.Between(from, to)
	if !ok || own.Machine == "" || own.Machine != of.anchor.Machine {
		return o, false, ok
	}
	ahead, give := of.anchor.At-own.At, of.anchor.Error+own.Error
	if ahead+give < o.Least || ahead-give > o.Most {
		return o, false, true
	}
	return skew.Offset{
		At: o.At, By: ahead, Bound: give, Least: ahead - give, Most: ahead + give, Trip: o.Trip, Messages: o.Messages,
	}, true, true
}

// ahead is the offset now.
func (of *peer) ahead(own clock.Anchor, now int64) (ns int64, ok bool) {
	o, _, ok := of.offset(own, now, now)
	return o.By, ok
}

// How often a process writes to another one, at most: so often, and so often to all together.
const (
	every       = 200 * time.Millisecond
	everyOfAll  = 100 * time.Millisecond
	hurried     = 20 * time.Millisecond // where somebody waits
	hurriedAll  = 5 * time.Millisecond
	retry       = 250 * time.Millisecond // after an error
	outstanding = 16                     // notes that the broker has not confirmed
	openTimeout = 15 * time.Second
)

// pause is how long until the next note.
func (p *Peers) pause(to *peer) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	others := p.Count - 1
	each := func(least, ofAll time.Duration) time.Duration { return max(least, time.Duration(others*int(ofAll))) }
	switch {
	case to.gone:
		return time.Hour
	case p.waiting > 0 || p.left != 0:
		return each(hurried, hurriedAll)
	}
	return each(every, everyOfAll)
}

// tell writes to another process until ctx ends.
func (p *Peers) tell(ctx context.Context, to *peer) {
	var out *sender
	defer func() {
		if out != nil {
			closing, cancel := context.WithTimeout(context.Background(), farewell)
			defer cancel()
			_ = out.producer.Close(closing) // notes that are still on their way are nobody's loss
		}
	}()
	for {
		pause := p.pause(to)
		var err error
		if out == nil {
			out, err = p.sender(ctx, to)
		}
		if err == nil {
			out.send(ctx, p.note(to), p.fail)
		}
		if err != nil && ctx.Err() == nil {
			p.fail(err)
			pause = max(pause, retry)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-to.kick:
			timer.Stop()
			if err != nil && clock.Timer(ctx, driver.Now()+int64(retry)) != nil {
				return
			}
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// sender is a producer for notes.
type sender struct {
	producer driver.Producer
	room     chan struct{}
}

// sender opens one to a box, which it makes where its process may not have come to that.
func (p *Peers) sender(ctx context.Context, to *peer) (*sender, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	p.mu.Lock()
	there := to.instance != 0 || to.guess != 0
	p.mu.Unlock()
	if !there {
		if _, err := mail.Make(ctx, p.Conn, p.Address, p.boxOf(to.index)); err != nil {
			return nil, err
		}
	}
	options, err := p.Address.Resolve(driver.OnProducer, nil)
	if err != nil {
		return nil, err
	}
	config := driver.ProducerConfig{Topic: p.boxOf(to.index), Window: outstanding, Options: options}
	if !p.Address.Driver.Features.Async {
		config.Workers = 1
	}
	s := &sender{room: make(chan struct{}, outstanding)}
	if s.producer, err = p.Conn.NewProducer(ctx, config); err != nil {
		return nil, err
	}
	return s, nil
}

// send hands a note over. Where many have not been confirmed it is left out: the next one says the same.
func (s *sender) send(ctx context.Context, text []byte, failed func(error)) {
	select {
	case s.room <- struct{}{}:
	default:
		return
	}
	s.producer.Send(ctx, driver.Batch{{Body: text}}, func(_ int, err error) {
		<-s.room
		if err != nil && ctx.Err() == nil {
			failed(err)
		}
	})
}
