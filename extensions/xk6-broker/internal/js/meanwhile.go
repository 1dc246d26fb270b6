package js

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/load"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/samples"
)

// staleAfter is how old the results so far may be, which are written each [samples.Interval], until that is worth a warning.
const staleAfter = 3 * samples.Interval

// meanwhile writes the results so far again and again, and sees to it that somebody hears of it where they are old.
type meanwhile struct {
	write func() error
	warn  func(err error) // err is nil where they are only late
	once  sync.Once
	watch *time.Timer
}

func startMeanwhile(write func() error, warn func(err error)) *meanwhile {
	m := &meanwhile{write: write, warn: warn}
	m.watch = time.AfterFunc(staleAfter, func() { m.tell(nil) })
	return m
}

// again writes them. Their age counts from when they were put together.
func (m *meanwhile) again() {
	began := time.Now()
	if err := m.write(); err != nil {
		m.tell(err)
		return
	}
	m.watch.Reset(staleAfter - time.Since(began))
}

func (m *meanwhile) tell(err error) { m.once.Do(func() { m.warn(err) }) }

func (m *meanwhile) halt() { m.watch.Stop() }

// keepMeanwhile writes the results so far, which a process leaves that is killed, until the result is called.
func (r *run) keepMeanwhile() (halt func()) {
	m := startMeanwhile(r.reportMeanwhile, func(err error) {
		log := r.logger
		if err != nil {
			log = log.WithError(err)
			log.Warn("the results so far could not be written")
			return
		}
		log.Warnf("the results so far have not been written for %v: the disk or the machine does not keep up, and a process that is killed leaves what is older", staleAfter)
	})
	m.again() // makes the folder
	if err := r.collector.RecordTo(filepath.Join(r.meanwhile.Load().Path(), report.RecordingFile)); err != nil {
		m.tell(err)
	}
	stop := samples.Each(func(time.Time) { m.again() })
	return func() {
		stop()
		m.halt()
	}
}

func (r *run) reportMeanwhile() error {
	so, err := r.unmeasured() // the recording beside it has what was measured
	if err != nil {
		return err
	}
	return r.meanwhile.Load().WriteMeanwhile(so, r.savedLedger())
}

// queued is how many arrivals of open-arrival-rate wait for a VU that would send under some labels: as many as so far came of an arrival of the scenario.
func queued(l load.Labels, due int64) uint64 {
	for _, t := range executors.Totals() {
		if t.Waiting > 0 && t.Started > 0 && tagsOf(l).Map()["scenario"] == t.Scenario {
			return uint64(float64(due) * float64(t.Waiting) / float64(t.Started)) //gosec:disable G115 -- a count
		}
	}
	return 0
}
