package pulsar

import "context"

// await runs a call without a context and waits until ctx ends. late gets a result that comes
// later.
func await[T any](ctx context.Context, c *conn, call func() (T, error), late func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	back := make(chan result)
	gone := make(chan struct{})
	c.running.Go(func() {
		value, err := call()
		select {
		case back <- result{value, c.journal.explain(err)}:
		case <-gone:
			if err == nil && late != nil {
				late(value)
			}
		}
	})
	select {
	case r := <-back:
		return r.value, r.err
	case <-ctx.Done():
		close(gone)
		return none, ctx.Err()
	}
}

// done is await for a call that returns an error only.
func (c *conn) done(ctx context.Context, call func() error) error {
	_, err := await(ctx, c, func() (struct{}, error) { return struct{}{}, call() }, nil)
	return err
}
