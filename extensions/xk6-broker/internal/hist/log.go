package hist

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// WriteHGRM writes the percentile distribution in the text form .hgrm of HdrHistogram's plotters.
// Values are in the unit.
func (h *Histogram) WriteHGRM(w io.Writer, unit time.Duration) error {
	const ticksPerHalfDistance = 5 // as HdrHistogram's tools
	dense := hdrhistogram.New(1, Highest, digits)
	if h.sparse != nil {
		h.sparse.MergeInto(dense)
	}
	if _, err := dense.PercentilesPrint(w, ticksPerHalfDistance, float64(unit)); err != nil {
		return fmt.Errorf("hgrm: %w", err)
	}
	return nil
}

// Log writes interval histograms in HdrHistogram's log format 1.3, .hlog: a line for each interval
// and tag.
type Log struct {
	w io.Writer
}

// NewLog begins a log of a run that started at start.
func NewLog(w io.Writer, start time.Time) (*Log, error) {
	log := hdrhistogram.NewHistogramLogWriter(w)
	line := fmt.Sprintf("[StartTime: %.3f (seconds since epoch), %s]",
		float64(start.UnixMilli())/1e3, start.UTC().Format(time.RFC3339))
	if err := errors.Join(log.OutputLogFormatVersion(), log.OutputComment(line), log.OutputLegend()); err != nil {
		return nil, fmt.Errorf("hlog: %w", err)
	}
	return &Log{w}, nil
}

// Write adds the histogram of an interval, in milliseconds. The tag names the series and can be
// empty.
func (l *Log) Write(tag string, from, to time.Time, interval *Histogram) error {
	if tag != "" {
		tag = "Tag=" + tag + ","
	}
	begin, end := float64(from.UnixMilli())/1e3, float64(to.UnixMilli())/1e3
	encoded := base64.StdEncoding.EncodeToString(interval.encode())
	greatest := float64(highest(interval.max)) / 1e6
	if _, err := fmt.Fprintf(l.w, "%s%f,%f,%f,%s\n", tag, begin, end-begin, greatest, encoded); err != nil {
		return fmt.Errorf("hlog: %w", err)
	}
	return nil
}
