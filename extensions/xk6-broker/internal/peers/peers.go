// Package peers has the processes of a test talk with each other, through the broker that they test: so each knows when the others are ready, and by
// how much their clocks differ. All that it takes is a driver that sends and receives.
//
// Each process has a box, a topic by its number, and writes notes to those of the others, a few a second. A note repeats when the last one of
// its reader was sent and heard, as NTP's do (RFC 5905), so that notes both ways tell of the clocks. Notes of a process that was there before,
// under the same name, are known by the random number of the process that they are for.
package peers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/clock"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/mail"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/skew"
)

// Config says who the processes are, and where they meet.
type Config struct {
	Run      uint32 // of the test
	Instance uint32 // of this process, a random number
	Index    int    // of this process, from 0
	Count    int    // of the processes
	Name     string // of this process, for people
	Wait     time.Duration
	Conn     driver.Conn
	Address  *driver.Address
	Topic    string // beside which the boxes are
}

// Peers are the other processes of a test, as this one hears of them.
type Peers struct {
	Config

	clock  func(now int64) int64 // nil but in tests: what this process's clock says when [driver.Now] says so
	anchor clock.Anchor
	box    *mail.Box
	stop   context.CancelFunc
	loops  sync.WaitGroup

	mu       sync.Mutex
	changed  chan struct{} // closed, and made anew, when something has
	began    int64
	ended    int64 // 0 before
	left     int64 // when this process said that it leaves; 0 before
	waiting  int   // who wait for a point, and are to hear of it soon
	watching int   // who wait for one as long as it takes
	points   map[string]int64
	all      []*peer // by their numbers; this process has none
	err      error   // that opening a box, sending or receiving gave last
}

// Open begins to talk with the others.
func Open(ctx context.Context, c Config) (*Peers, error) { return open(ctx, c, clock.Anchored(), nil) }

func open(ctx context.Context, c Config, anchor clock.Anchor, skewed func(int64) int64) (*Peers, error) {
	p := &Peers{Config: c, clock: skewed, anchor: anchor, changed: make(chan struct{}), points: map[string]int64{}, all: make([]*peer, c.Count)}
	p.began = p.now()
	made, err := mail.Make(ctx, c.Conn, c.Address, p.boxOf(c.Index))
	if err != nil {
		return nil, fmt.Errorf("topic %s, by which processes talk with each other: %w", p.boxOf(c.Index), err)
	}
	if p.box, err = mail.Open(ctx, c.Conn, c.Address, p.boxOf(c.Index), made); err != nil {
		return nil, fmt.Errorf("topic %s, by which processes talk with each other: %w", p.boxOf(c.Index), err)
	}
	talking, stop := context.WithCancel(context.Background())
	p.stop = stop
	for i := range p.all {
		if i != c.Index {
			p.all[i] = &peer{index: i, points: map[string]int64{}, kick: make(chan struct{}, 1)}
		}
	}
	p.box.Read(p.take, func(_ string, err error) { p.fail(err) })
	for _, to := range p.all {
		if to != nil {
			p.loops.Go(func() { p.tell(talking, to) })
		}
	}
	return p, nil
}

func (p *Peers) boxOf(index int) string {
	return mail.Beside(p.Topic, fmt.Sprintf("peers-%08x-%d", p.Run, index))
}

func (p *Peers) now() int64 { return p.at(driver.Now()) }

// at is what this process's clock says.
func (p *Peers) at(now int64) int64 {
	if p.clock == nil {
		return now
	}
	return p.clock(now)
}

func (p *Peers) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// signal says that something has changed. The lock is held.
func (p *Peers) signal() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Reach tells the others that this process has come to a point, which counts from lead later on: by then they have heard of it.
func (p *Peers) Reach(point string, lead time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, there := p.points[point]; there {
		return
	}
	slowest := int64(lead)
	for _, of := range p.others() {
		if o, ok := of.limits.Between(p.began, p.began); ok && lead > 0 {
			slowest = max(slowest, tripsAhead*o.Trip)
		}
	}
	p.points[point] = p.now() + slowest
	for _, to := range p.others() {
		to.hurry()
	}
	p.signal()
}

const tripsAhead = 4

// others are all but this process.
func (p *Peers) others() []*peer {
	all := make([]*peer, 0, p.Count)
	for _, of := range p.all {
		if of != nil {
			all = append(all, of)
		}
	}
	return all
}

// Await returns when all of some processes have come to a point, this one included, and from when on it counts: by this process's clock, and at
// the same time in all of them, as far as their clocks are known. Those who do not come in time are waited for no more, then and later, and
// are the error, unless it is ctx's; the others are there all the same. Who is nil for all.
func (p *Peers) Await(ctx context.Context, point string, who func(index int) bool) (at int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting++
	defer func() { p.waiting-- }()
	for _, to := range p.others() {
		to.hurry()
	}
	timeout := time.NewTimer(p.Wait)
	defer timeout.Stop()
	var errs []error
	for {
		at = p.points[point]
		var missing []*peer
		for _, of := range p.others() {
			if of.lacked != "" || who != nil && !who(of.index) {
				continue
			}
			reached, there := of.points[point]
			ahead, known := of.ahead(p.anchor, p.now())
			switch {
			case there && known:
				at = max(at, reached-ahead)
			case of.gone:
				errs = append(errs, p.lacks(of, fmt.Sprintf("ended before it came to %q", point)))
			default:
				missing = append(missing, of)
			}
		}
		if len(missing) == 0 {
			return at, errors.Join(errs...)
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
			p.mu.Lock()
		case <-timeout.C:
			p.mu.Lock()
			for _, of := range missing {
				if of.lacked != "" { // somebody else has said so
					continue
				}
				errs = append(errs, p.lacks(of, p.late(of, point)))
			}
		case <-ctx.Done():
			p.mu.Lock()
			return at, ctx.Err()
		}
	}
}

// Outlast returns when all processes have come to a point that are still there, however long that takes, or with ctx's error. Those that have left, that nobody
// waits for any more or of which nothing has been heard for a while need not come.
func (p *Peers) Outlast(ctx context.Context, point string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watching++
	defer func() { p.watching-- }()
	for {
		missing := 0
		for _, of := range p.others() {
			if _, there := of.points[point]; !there && of.lacked == "" && !of.gone && p.now()-max(of.last, p.began) < int64(silence) {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
		changed, look := p.changed, time.NewTimer(silence/10)
		p.mu.Unlock()
		select {
		case <-changed:
		case <-look.C:
		case <-ctx.Done():
		}
		look.Stop()
		p.mu.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// late says what a process did not do in time. The lock is held.
func (p *Peers) late(of *peer, point string) string {
	if of.instance != 0 {
		return fmt.Sprintf("came, and not to %q within %v", point, p.Wait)
	}
	if of.rival != 0 {
		return fmt.Sprintf("had met another process that was number %d (instance %d), and did not take this one for it within %v: this one was started again, as a Job does with "+
			"a pod that failed, or was given that one's --execution-segment", p.Index+1, of.rival, p.Wait)
	}
	text := fmt.Sprintf("never came within %v", p.Wait)
	if p.err != nil {
		text += fmt.Sprintf(" (the last error here: %v)", p.err)
	}
	return text
}

func (p *Peers) lacks(of *peer, what string) error {
	of.lacked = what
	return fmt.Errorf("%s %s", p.called(of), what)
}

// called names another process.
func (p *Peers) called(of *peer) string {
	text := fmt.Sprintf("process %d of %d", of.index+1, p.Count)
	if of.name != "" {
		text += " (" + of.name + ")"
	}
	return text
}

// Barrier returns when all processes have come to the point of that name.
func (p *Peers) Barrier(ctx context.Context, name string) error {
	p.Reach(name, 0)
	_, err := p.Await(ctx, name, nil)
	return err
}

// Peer is what is known of another process.
type Peer struct {
	Index    int
	Instance uint32 // 0 where it never came
	Name     string
	Lacked   string // what it was waited for in vain
	Twin     uint32 // another process that says to be the same one; 0 for none
	Measured bool   // its clock was compared
	Same     bool   // with the same machine's: exactly
	Clock    skew.Offset
	Later    time.Duration // it came to a point, than this process; 0 where that is not known
}

// Known is what is known of the others so far, and of how far apart they came to a point.
func (p *Peers) Known(point string) []Peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := p.ended
	if until == 0 {
		until = p.now()
	}
	var all []Peer
	for _, of := range p.others() {
		k := Peer{Index: of.index, Instance: of.instance, Name: of.name, Lacked: of.lacked, Twin: of.twin}
		k.Clock, k.Same, k.Measured = of.offset(p.anchor, p.began, until)
		if at, here := p.points[point]; here {
			reached, there := of.points[point]
			if ahead, known := of.ahead(p.anchor, p.now()); there && known {
				k.Later = time.Duration(reached - ahead - at)
			}
		}
		all = append(all, k)
	}
	return all
}

const (
	farewell = time.Second      // that the others may take to let this process go
	silence  = 10 * time.Second // after which a process is taken to be no more
)

// Close takes leave of the others, and deletes this process's box, and those of others who are not there to do it.
func (p *Peers) Close(ctx context.Context) error {
	leaving, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	p.leave(leaving)
	p.stop()
	p.loops.Wait()
	errs := []error{p.box.Close(ctx)}
	p.mu.Lock()
	p.ended = p.now()
	var dead []string
	for _, of := range p.others() {
		if !of.gone && p.ended-of.last > int64(silence) {
			dead = append(dead, p.boxOf(of.index))
		}
	}
	p.mu.Unlock()
	for _, topic := range dead {
		errs = append(errs, mail.Delete(ctx, p.Conn, p.Address, topic))
	}
	return errors.Join(errs...)
}

// leave returns when all who are there know that this process leaves, and write to its box no more, or when ctx ends.
func (p *Peers) leave(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = p.now()
	for _, to := range p.others() {
		to.hurry()
	}
	for {
		there := 0
		for _, of := range p.others() {
			if of.instance != 0 && !of.gone && of.told < p.left && p.now()-of.last < int64(silence) {
				there++
			}
		}
		if there == 0 {
			return
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
			p.mu.Lock()
		case <-ctx.Done():
			p.mu.Lock()
			return
		}
	}
}
