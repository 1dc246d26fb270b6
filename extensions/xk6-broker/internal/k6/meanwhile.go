package k6

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// keepMeanwhile writes the results so far each [samples.Interval], which a process leaves that is killed, until the result is called.
func (r *run) keepMeanwhile() (halt func()) {
	var warned sync.Once
	write := func(err error) {
		if err != nil {
			warned.Do(func() { r.logger.WithError(err).Warn("the results so far could not be written") })
		}
	}
	write(r.reportMeanwhile()) // makes the folder
	write(r.collector.RecordTo(filepath.Join(r.meanwhile.Load().Path(), report.RecordingFile)))
	return samples.Each(func(time.Time) { write(r.reportMeanwhile()) })
}

func (r *run) reportMeanwhile() error {
	return r.meanwhile.Load().WriteMeanwhile(r.unmeasured(), r.savedLedger()) // the recording beside it has what was measured
}
