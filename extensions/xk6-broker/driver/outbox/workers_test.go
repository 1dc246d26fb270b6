package outbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

func TestWorkers_Close_GivesUpWhenContextEnds(t *testing.T) {
	w := outbox.Start(1, 1, 0, func(s string) int { return len(s) }, func(ctx context.Context, all []outbox.Item[string]) {
		<-ctx.Done()
		all[0].Done(context.Cause(ctx))
	})
	errs := make([]error, 2)
	done := func(i int, err error) { errs[i] = err }
	convert := func(m *driver.Message) (string, error) {
		if len(m.Body) == 0 {
			return "", errors.ErrUnsupported
		}
		return string(m.Body), nil
	}
	w.Send(driver.Batch{{Body: []byte("a")}, {}}, done, convert)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("late"))
	w.Close(ctx)
	if !errors.Is(errs[0], context.Canceled) || !errors.Is(errs[1], errors.ErrUnsupported) {
		t.Error(errs)
	}
	w.Send(driver.Batch{{Body: []byte("a")}}, done, convert)
	if !errors.Is(errs[0], driver.ErrClosed) {
		t.Error(errs)
	}
}
