package kafka

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// lease is the context of a record lent to this consumer. At each poll the client library accepts
// the unsettled records of the last one, which it finds through their contexts. While a lease is
// closed it finds nothing; Settle opens it.
type lease struct {
	context.Context // the record's own
	attempt         int32
	open            bool
	settled         bool
}

func (l *lease) Value(key any) any {
	if !l.open {
		return nil
	}
	return l.Context.Value(key)
}

// lender stamps records as stamp does, and gives them closed leases before a poll returns them.
type lender struct {
	mu     sync.Mutex
	leases []lease // made many at a time
}

func (l *lender) OnFetchRecordBuffered(r *kgo.Record) {
	note(r, driver.Now())
	l.mu.Lock()
	if len(l.leases) == 0 {
		l.leases = make([]lease, 64)
	}
	given := &l.leases[0]
	l.leases = l.leases[1:]
	l.mu.Unlock()
	given.Context, given.attempt = r.Context, r.DeliveryCount()
	r.Context = given
}
