package kafka

import (
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// lot holds the settlements of one partition without an answer. The library reports answers by
// partition and not by message, so it gets one lot at a time, and later settlements wait.
type lot struct {
	sent    map[driver.Outcome]int
	waiting []settlement
}

type settlement struct {
	record  *kgo.Record
	outcome driver.Outcome
}

var statuses = map[driver.Outcome]kgo.AckStatus{
	driver.Ack: kgo.AckAccept, driver.Requeue: kgo.AckRelease, driver.Reject: kgo.AckReject,
}

// settle sends the settlements of partitions without a lot and keeps the others. The lock is held.
func (s *shareConsumer) settle(records []*kgo.Record, o driver.Outcome) {
	var free []*lot
	for _, r := range records {
		l := s.lots[r.Partition]
		if l == nil {
			l = &lot{}
			s.lots[r.Partition] = l
		}
		if len(l.waiting) == 0 && len(l.sent) == 0 {
			free = append(free, l)
		}
		l.waiting = append(l.waiting, settlement{r, o})
	}
	for _, l := range free {
		s.send(l)
	}
}

// send gives the library the waiting settlements. The lock is held.
func (s *shareConsumer) send(l *lot) {
	l.sent = map[driver.Outcome]int{}
	by := map[driver.Outcome][]*kgo.Record{}
	for _, w := range l.waiting {
		l.sent[w.outcome]++
		by[w.outcome] = append(by[w.outcome], w.record)
		if given, ok := w.record.Context.(*lease); ok {
			given.open = true
		}
	}
	clear(l.waiting)
	l.waiting = l.waiting[:0]
	for o, records := range by {
		s.MarkAcks(statuses[o], records...)
	}
}

// acknowledged is the library's hook for the broker's answers to settlements.
func (s *shareConsumer) acknowledged(_ *kgo.Client, results kgo.ShareAckResults) {
	for _, r := range results {
		s.mu.Lock()
		l := s.lots[r.Partition]
		if l == nil {
			s.mu.Unlock()
			continue
		}
		sent := l.sent
		s.send(l)
		_, requeues := l.sent[driver.Requeue]
		_, rejects := l.sent[driver.Reject]
		s.mu.Unlock()
		if requeues || rejects {
			_ = s.FlushAcks(ended) // starts it and does not wait
		}
		for o, n := range sent {
			s.answered(o, n, r.Err)
		}
	}
}

// OnSettled implements [driver.SettleReporter].
func (s *shareConsumer) OnSettled(report func(o driver.Outcome, n int, err error)) { s.report = report }

// answered reports an answer. Settle returns the error if it waits, or if there is no report.
func (s *shareConsumer) answered(o driver.Outcome, n int, err error) {
	switch {
	case err != nil && (s.confirm || s.report == nil):
		s.failure.set(err)
	case s.report != nil:
		s.report(o, n, err)
	}
}
