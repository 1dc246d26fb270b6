package redis

import "context"

// call is an exchange with a waiting caller.
type call struct {
	commands []byte
	replies  int
	parse    func(r reader, i int) error
	err      error // the first
	left     int
	done     chan struct{}
}

func (c *call) encode(b []byte) ([]byte, int) { return append(b, c.commands...), c.replies }

func (c *call) read(r reader, i int) error {
	err := c.parse(r, i)
	if err == nil || answered(err) {
		c.end(i, err)
	}
	return err
}

func (c *call) end(_ int, err error) {
	if c.err == nil {
		c.err = err
	}
	if c.left--; c.left == 0 {
		close(c.done)
	}
}

// do sends commands and waits for their replies, or until ctx ends. Results of parse are valid only
// if do returns no error of ctx.
func (w *wire) do(ctx context.Context, commands []byte, replies int, parse func(r reader, i int) error) error {
	c := &call{commands: commands, replies: replies, parse: parse, left: replies, done: make(chan struct{})}
	if err := w.put(c); err != nil {
		return err
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ignore reads a reply, and returns its error.
func ignore(r reader, _ int) error {
	_, err := r.skip()
	return err
}
