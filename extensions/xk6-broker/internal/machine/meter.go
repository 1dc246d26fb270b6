package machine

import (
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// tick is how long the meter sleeps at a time.
const tick = time.Millisecond

// meter notes how much longer than at best its sleeps take.
type meter struct {
	now   func() int64 // in ns
	sleep func(time.Duration)
	woke  int64 // when it last did
	least int64 // from one time to the next, in ns: what the platform takes at best is no hiccup

	mu      sync.Mutex
	hiccups *hist.Histogram // since they were last taken
}

func newMeter(now func() int64, sleep func(time.Duration)) *meter {
	m := &meter{now: now, sleep: sleep, woke: now(), hiccups: &hist.Histogram{}}
	m.least = m.once()
	return m
}

// run measures until stop is closed.
func (m *meter) run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
			m.slept(m.once())
		}
	}
}

// once sleeps once and returns how long it is since it last had, in ns: a standstill between two sleeps is one too.
func (m *meter) once() int64 {
	m.sleep(tick)
	before := m.woke
	m.woke = m.now()
	return m.woke - before
}

// slept notes that a sleep took so long, in ns. A long one stands for those that there would have been meanwhile, each of which would have been
// late by a tick less than the one before. Without that a standstill, of whatever length, would be one value among thousands.
func (m *meter) slept(took int64) {
	m.least = min(m.least, took)
	m.mu.Lock()
	defer m.mu.Unlock()
	late := took - m.least
	m.hiccups.Record(late)
	for late -= int64(tick); late >= int64(tick); late -= int64(tick) {
		m.hiccups.Record(late)
	}
}

// take gives the hiccups since it was last called.
func (m *meter) take() *hist.Histogram {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.hiccups
	m.hiccups = &hist.Histogram{}
	return taken
}
