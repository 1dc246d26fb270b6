package redis

import (
	"context"
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// producer sends over its own wire. The drivers differ in the command.
type producer struct {
	link    *link
	headers bool
	// command appends the command that sends a message; it has one reply.
	command func(b []byte, m *driver.Message) []byte
	// answer reads the reply, and fills the place if it is not nil. An error about the content is a
	// [replyError].
	answer func(r reader, place *driver.Place) error
}

// Send hands the batch to the writer, which sends all that waits when the socket is free.
func (p *producer) Send(ctx context.Context, b driver.Batch, done driver.Done) {
	s := &sending{producer: p, batch: b, done: done}
	s.refuse()
	if s.left() == 0 {
		return
	}
	w, err := p.link.Get(ctx)
	if err == nil {
		s.barrier = w.barrier
		err = w.put(s)
	}
	if err != nil {
		for i := range s.left() {
			s.end(i, err)
		}
	}
}

// Close waits for the replies.
func (p *producer) Close(ctx context.Context) error { return p.link.close(ctx) }

// sending is a batch on its way.
type sending struct {
	*producer
	barrier *barrier
	batch   driver.Batch
	done    driver.Done
	only    []int // the places in batch of what is sent, where that is not all
}

// refuse takes out the messages that cannot be sent.
func (s *sending) refuse() {
	for i := range s.batch {
		err := s.unsendable(&s.batch[i])
		if err == nil {
			if s.only != nil {
				s.only = append(s.only, i)
			}
			continue
		}
		if s.only == nil {
			s.only = make([]int, i, len(s.batch))
			for j := range s.only {
				s.only[j] = j
			}
		}
		s.done(i, err)
	}
}

// unsendable returns an error if a message has headers that the driver cannot send, or a part that
// is too large for the server.
func (p *producer) unsendable(m *driver.Message) error {
	if !p.headers && len(m.Headers) > 0 {
		return errNoHeaders
	}
	largest := max(len(m.Body), len(m.Key))
	for _, h := range m.Headers {
		largest = max(largest, len(headerPrefix)+len(h.Name), len(h.Value))
	}
	if limit := p.link.conn.largest; largest > limit {
		return replyError(
			fmt.Sprintf("a body, key or header of %d bytes is larger than the server's proto-max-bulk-len, %d", largest, limit),
		)
	}
	return nil
}

func (s *sending) left() int {
	if s.only != nil {
		return len(s.only)
	}
	return len(s.batch)
}

// place is where in the batch the i-th message sent is.
func (s *sending) place(i int) int {
	if s.only != nil {
		return s.only[i]
	}
	return i
}

func (s *sending) encode(b []byte) ([]byte, int) {
	n := s.left()
	for i := range n {
		b = s.command(b, &s.batch[s.place(i)])
	}
	return b, n
}

func (s *sending) read(r reader, i int) error {
	err := s.answer(r, s.batch[s.place(i)].Place)
	if err == nil && s.barrier != nil {
		s.barrier.hold(s, i)
	} else if err == nil || answered(err) {
		s.end(i, err)
	}
	return err
}

func (s *sending) end(i int, err error) { s.done(s.place(i), err) }
