package redis

import (
	"context"
	"slices"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// intake has the messages that a wire received until Receive takes them, and then until they are
// settled.
type intake struct {
	*inbox.Inbox[*delivery]
	room     *inbox.Room
	prefetch int
	settles  bool // a message counts until it is settled, and not only until it is received

	mu       sync.Mutex    // after the inbox's own locks
	held     []*delivery   // received and not settled, in no order
	settling [][]*delivery // their settlement is on its way
	asking   bool          // a request for more is with the server
	failed   bool          // the last request, and Receive has not told yet
	closed   bool
}

// delivery is a message with its consumer. It is the message's token.
type delivery struct {
	message driver.Message
	id      string // of a stream's entry
	raw     []byte // a list's element
	place   int    // in held
}

func newIntake(prefetch int, settles bool) *intake {
	in := &intake{room: inbox.NewRoom(prefetch), prefetch: prefetch, settles: settles}
	in.Inbox = inbox.New(in.hand)
	return in
}

// put adds received messages.
func (in *intake) put(all ...*delivery) {
	in.room.Take(len(all))
	in.Put(all...)
}

func (in *intake) hand(b driver.Batch, arrived []*delivery) {
	for i, d := range arrived {
		b[i] = d.message
		b[i].Token = d
	}
	if !in.settles {
		in.room.Give(len(arrived))
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, d := range arrived {
		in.hold(d)
	}
}

// begin returns the number of messages to ask the server for, and marks the request. While messages
// wait, small requests are put off, because one for each settled message costs too much.
func (in *intake) begin() int {
	waiting, room := in.Len(), in.room.Free()
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.asking || in.failed || in.closed || room <= 0 || waiting > 0 && room < in.prefetch/4 {
		return 0
	}
	in.asking = true
	return room
}

// finish ends the request. Its error is for the next Receive.
func (in *intake) finish(err error) {
	in.mu.Lock()
	in.asking = false
	in.failed = err != nil
	in.mu.Unlock()
	if err != nil {
		in.Fail(err)
	} else {
		in.Wake()
	}
}

// shut makes Receive return and reports whether it is the first to do so.
func (in *intake) shut() bool {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	in.room.Close()
	return in.Close()
}

// receive is Receive; ask makes sure that the server has been asked for more, if there is room.
func (in *intake) receive(ctx context.Context, b driver.Batch, ask func(ctx context.Context) error) (int, error) {
	for len(b) > 0 {
		n, err := in.Take(b)
		if err != nil {
			in.mu.Lock()
			in.failed = false
			in.mu.Unlock()
		}
		if n > 0 || err != nil {
			return n, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := ask(ctx); err != nil {
			return 0, err
		}
		if err := in.Wait(ctx); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

func (in *intake) hold(d *delivery) {
	d.place = len(in.held)
	in.held = append(in.held, d)
}

// release takes the held messages of a batch to settle them. If others were settled already, it
// returns an error too.
func (in *intake) release(b driver.Batch) ([]*delivery, error) {
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

// settled ends release. After an error the messages are held again.
func (in *intake) settled(all []*delivery, err error) {
	in.mu.Lock()
	in.settling = slices.DeleteFunc(in.settling, func(some []*delivery) bool { return &some[0] == &all[0] })
	if err != nil {
		for _, d := range all {
			in.hold(d)
		}
	}
	in.mu.Unlock()
	if err == nil {
		in.room.Give(len(all))
	}
	in.Wake() // Receive may wait for room
}

// here returns the messages of this consumer. A message that moves meanwhile may be in it twice, so
// exact counts need the goroutine of Receive.
func (in *intake) here() []*delivery {
	waiting := in.Waiting()
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Concat(waiting, in.held, slices.Concat(in.settling...))
}
