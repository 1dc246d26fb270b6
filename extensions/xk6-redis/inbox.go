package redis

import (
	"context"
	"slices"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// inbox is where a consumer's wire puts what has come and Receive takes it.
type inbox struct {
	prefetch int
	settles  bool // a message counts until it is settled, and not only until it is received

	mu       sync.Mutex
	change   chan struct{} // holds a token when something has changed that Receive waits for
	vacancy  chan struct{} // holds a token when something has changed that a wire with too many messages waits for
	arrived  []*delivery
	next     int           // the first of arrived that has not been received
	held     []*delivery   // received and not settled, in no order
	settling [][]*delivery // their settlement is on its way
	asking   bool          // a request for more is with the server
	err      error         // what went wrong since the last Receive
	closed   bool
	gone     chan struct{} // closed with closed
}

// delivery is a message with its consumer. It is the message's token.
type delivery struct {
	message driver.Message
	id      string // of a stream's entry
	raw     []byte // a list's element
	place   int    // in held
}

func newInbox(prefetch int, settles bool) inbox {
	return inbox{
		prefetch: prefetch, settles: settles,
		change: make(chan struct{}, 1), vacancy: make(chan struct{}, 1), gone: make(chan struct{}),
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put adds what has come.
func (in *inbox) put(all ...*delivery) {
	in.mu.Lock()
	in.arrived = append(in.arrived, all...)
	in.mu.Unlock()
	notify(in.change)
}

// waiting is how many have not been received; the lock is held.
func (in *inbox) waiting() int { return len(in.arrived) - in.next }

// room is how many more may come; the lock is held.
func (in *inbox) room() int {
	room := in.prefetch - in.waiting() - len(in.held)
	for _, some := range in.settling {
		room -= len(some)
	}
	return room
}

// begin says how many to ask the server for, and marks that it is done. While there is something to receive, asking
// waits until it is worth it: a request for each single message that is settled would cost more than it brings.
func (in *inbox) begin() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	room := in.room()
	if in.asking || in.closed || in.err != nil || room <= 0 || in.waiting() > 0 && room < in.prefetch/4 {
		return 0
	}
	in.asking = true
	return room
}

// finish marks that nothing is asked for any more, and keeps what went wrong for the next Receive.
func (in *inbox) finish(err error) {
	in.mu.Lock()
	in.asking = false
	if !in.closed && in.err == nil {
		in.err = err
	}
	in.mu.Unlock()
	notify(in.change)
}

// shut makes Receive return and tells whether it is the first to do so.
func (in *inbox) shut() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false
	}
	in.closed = true
	close(in.gone)
	return true
}

// receive is Receive; ask makes sure that the server has been asked for more, if there is room.
func (in *inbox) receive(ctx context.Context, b driver.Batch, ask func(ctx context.Context) error) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		n, err := in.take(b)
		if n > 0 || err != nil {
			return n, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := ask(ctx); err != nil {
			return 0, err
		}
		select {
		case <-in.change:
		case <-in.gone:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// take moves what has arrived into b.
func (in *inbox) take(b driver.Batch) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return 0, driver.ErrClosed
	}
	n := min(len(b), in.waiting())
	if n == 0 {
		err := in.err
		in.err = nil
		return 0, err
	}
	for i, d := range in.arrived[in.next : in.next+n] {
		b[i] = d.message
		b[i].Token = d
		if in.settles {
			in.hold(d)
		}
	}
	clear(in.arrived[in.next : in.next+n])
	if in.next += n; in.next == len(in.arrived) {
		in.arrived, in.next = in.arrived[:0], 0
	}
	notify(in.vacancy)
	return n, nil
}

func (in *inbox) hold(d *delivery) {
	d.place = len(in.held)
	in.held = append(in.held, d)
}

// release takes those of a batch that are held here, each once, for settling. It takes them too where it fails because of others, which are
// settled already.
func (in *inbox) release(b driver.Batch) ([]*delivery, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil, driver.ErrClosed
	}
	var err error
	all := make([]*delivery, 0, len(b))
	for i := range b {
		d, ok := b[i].Token.(*delivery)
		if !ok || d.place >= len(in.held) || in.held[d.place] != d {
			err = errSettled
			continue
		}
		last := in.held[len(in.held)-1]
		in.held[d.place], last.place = last, d.place
		in.held[len(in.held)-1] = nil
		in.held = in.held[:len(in.held)-1]
		all = append(all, d)
	}
	if len(all) > 0 {
		in.settling = append(in.settling, all)
	}
	return all, err
}

// settled ends what release began: back to held where it failed.
func (in *inbox) settled(all []*delivery, err error) {
	in.mu.Lock()
	in.settling = slices.DeleteFunc(in.settling, func(some []*delivery) bool { return &some[0] == &all[0] })
	if err != nil {
		for _, d := range all {
			in.hold(d)
		}
	}
	in.mu.Unlock()
	notify(in.change) // Receive may wait for room
}

// unreceived is what has come and was not received.
func (in *inbox) unreceived() []*delivery {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.arrived[in.next:])
}

// here is everything that is with this consumer as far as it knows.
func (in *inbox) here() []*delivery {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Concat(in.arrived[in.next:], in.held, slices.Concat(in.settling...))
}
