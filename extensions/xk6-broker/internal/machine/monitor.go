package machine

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Interval is the observation of a [Monitor] between two moments.
type Interval struct {
	From, To int64

	// Hiccups has a value for each millisecond, in ns: how much longer than at best a sleep of one
	// millisecond took. A standstill of 100 ms is the values 100, 99, 98 … ms, because an event in
	// its first millisecond was 100 ms late. A hiccup counts when it ends.
	Hiccups *hist.Histogram

	Process       Share // of its GOMAXPROCS CPUs that the process used
	Host          Share // of the CPUs that the process can run on, used by all processes
	Own           Share // of Host, used by this process
	Steal         Share // of these CPUs, used by other machines of the hypervisor
	Pressure      Share // of the time, in which some task of the machine waited for a CPU
	GroupPressure Share // the same of the process's cgroup (version 2), where its CPU limit shows
}

// Share is a part, 0 to 1. Only Linux has more than Process.
type Share struct {
	Value float64
	Known bool
}

// share returns part/total, unknown without a total.
func share(part, total float64) Share {
	if total <= 0 {
		return Share{}
	}
	return Share{Value: min(1, max(0, part/total)), Known: true}
}

// Monitor records how late a goroutine is that sleeps a millisecond over and over (Gil Tene's
// jHiccup), and how busy the CPUs are. It watches from [Start] to [Monitor.Stop].
type Monitor struct {
	meter *meter
	host  *host
	stop  chan struct{}
	done  chan struct{}

	mu   sync.Mutex // of the rest
	last moment
}

// moment has all counters at a time.
type moment struct {
	at      int64
	process int64 // CPU time, in ns
	host    counts
}

// Start starts a monitor, which takes a millisecond and some hundredths of a CPU.
func Start() *Monitor {
	m := &Monitor{
		host: newHost("/proc", "/sys/fs/cgroup", ownCPUs()),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	sleeper := Sleeper{Sleep: Until}
	ready := make(chan struct{})
	go func() {
		defer close(m.done)
		m.meter = newMeter(driver.Now, func(d time.Duration) {
			_ = sleeper.Until(context.Background(), driver.Now()+int64(d)) // no error without cancel
		})
		m.last = m.now()
		close(ready)
		m.meter.run(m.stop)
	}()
	<-ready
	return m
}

func (m *Monitor) now() moment {
	return moment{at: driver.Now(), process: int64(CPU()), host: m.host.count()}
}

// Interval returns the observation since the last call or the start. It reads a few small files and
// is made to be called once a second. After a very short interval the shares are unknown.
func (m *Monitor) Interval() Interval {
	m.mu.Lock()
	defer m.mu.Unlock()
	hiccups := m.meter.take()
	from, to := m.last, m.now()
	m.last = to
	i := Interval{From: from.at, To: to.at, Hiccups: hiccups}
	length := float64(to.at - from.at)
	to.host.since(from.host, length, &i)
	if to.process > 0 {
		used := float64(to.process - from.process)
		i.Process = share(used, length*float64(runtime.GOMAXPROCS(0)))
		i.Own = share(used, length*float64(to.host.cpus))
	}
	return i
}

// Stop ends the monitor. [Monitor.Interval] can still be called for the rest.
func (m *Monitor) Stop() {
	close(m.stop)
	<-m.done
}

// tick is the length of a sleep of the meter.
const tick = time.Millisecond

// meter records how much longer than at best its sleeps take.
type meter struct {
	now   func() int64 // in ns
	sleep func(time.Duration)
	woke  int64 // the end of the last sleep
	least int64 // from one end to the next, in ns: the platform at its best

	mu      sync.Mutex
	hiccups *hist.Histogram // since the last take
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

// once sleeps once and returns the time since the end of the last sleep, in ns.
func (m *meter) once() int64 {
	m.sleep(tick)
	before := m.woke
	m.woke = m.now()
	return m.woke - before
}

// slept records the length of a sleep in ns. A long one stands for the sleeps that it prevented,
// each late by a tick less. Otherwise a standstill of any length were one value among thousands.
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

// take returns the hiccups since the last call.
func (m *meter) take() *hist.Histogram {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.hiccups
	m.hiccups = &hist.Histogram{}
	return taken
}
