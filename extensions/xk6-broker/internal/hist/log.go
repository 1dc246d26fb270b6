package hist

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// WriteHGRM writes the percentile distribution in the text form .hgrm that HdrHistogram's plotters read, with values
// scaled to the unit.
func (h *Histogram) WriteHGRM(w io.Writer, unit time.Duration) error {
	if unit <= 0 {
		return fmt.Errorf("hgrm: the unit %v is not positive", unit)
	}
	const ticksPerHalfDistance = 5 // the resolution that all tools of the family use
	if _, err := h.HDR().PercentilesPrint(w, ticksPerHalfDistance, float64(unit)); err != nil {
		return fmt.Errorf("hgrm: %w", err)
	}
	return nil
}

// Log writes interval histograms in the log format 1.3 of HdrHistogram, .hlog: one line for each interval and tag, each
// with the complete distribution.
type Log struct {
	w io.Writer
}

// NewLog begins a log of a run that started at start.
func NewLog(w io.Writer, start time.Time) (*Log, error) {
	log := hdrhistogram.NewHistogramLogWriter(w)
	begun := fmt.Sprintf("[StartTime: %.3f (seconds since epoch), %s]",
		float64(start.UnixMilli())/1e3, start.UTC().Format(time.RFC3339))
	if err := errors.Join(log.OutputLogFormatVersion(), log.OutputComment(begun), log.OutputLegend()); err != nil {
		return nil, fmt.Errorf("hlog: %w", err)
	}
	return &Log{w}, nil
}

// Write adds the histogram of the interval from one time to another, which the format knows to the millisecond. The tag
// tells several series of one log apart and may be empty; commas, spaces and line breaks in it are an error.
func (l *Log) Write(tag string, from, to time.Time, interval *Histogram) error {
	if strings.ContainsAny(tag, ", \t\r\n") {
		return fmt.Errorf("hlog: the tag %q has a comma, a space or a line break in it", tag)
	}
	encoded, err := interval.encode()
	if err != nil {
		return fmt.Errorf("hlog: %w", err)
	}
	if tag != "" {
		tag = "Tag=" + tag + ","
	}
	top := int64(0)
	if interval.count > 0 {
		_, greatest := interval.ends()
		top = highest(greatest)
	}
	begin, length := float64(from.UnixMilli())/1e3, float64(to.UnixMilli())/1e3-float64(from.UnixMilli())/1e3
	if _, err := fmt.Fprintf(l.w, "%s%f,%f,%f,%s\n", tag, begin, length, float64(top)/1e6, encoded); err != nil {
		return fmt.Errorf("hlog: %w", err)
	}
	return nil
}

// Tag is a name as a tag can have it, without commas, spaces and line breaks.
func Tag(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(", \t\r\n", r) {
			return '_'
		}
		return r
	}, name)
}
