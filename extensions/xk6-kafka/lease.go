package kafka

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// lease is the context of a record that the broker has lent to this consumer. At each poll the client library takes what
// it polled before and what is not settled for accepted, and it finds what to accept through the record's context. While
// a lease is closed it finds nothing; Settle opens it.
type lease struct {
	context.Context // it stands in for the one that the record has
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

// lender stamps records, as stamp does, and closes their leases before any poll sees them.
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
