package hist

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// HDR is the distribution as the HdrHistogram library knows it, for its encodings. It holds no more than math.MaxInt64
// values; what is more than that is left out.
func (h *Histogram) HDR() *hdrhistogram.Histogram {
	to := hdrhistogram.New(1, Highest, digits)
	for i, c := range h.buckets() {
		c = min(c, uint64(math.MaxInt64-to.TotalCount()))
		if err := to.RecordValues(lowest(i), int64(c)); err != nil {
			panic("hist: the layout differs from HdrHistogram's: " + err.Error())
		}
	}
	return to
}

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

// document is a histogram in JSON. The extremes are exact there; the encoding only knows their buckets.
type document struct {
	Count    uint64 `json:"count"`
	Min      int64  `json:"min"`
	Max      int64  `json:"max"`
	Negative uint64 `json:"negative"`
	Overflow uint64 `json:"overflow"`
	HDR      string `json:"hdr"` // HdrHistogram V2, compressed, base64
}

// MarshalJSON encodes the histogram without loss: an object of its exact numbers and the distribution in HdrHistogram's
// compressed V2 encoding.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	if h.count > math.MaxInt64 {
		return nil, errors.New("histogram: more values than the encoding can count")
	}
	encoded, err := h.HDR().EncodeV2()
	if err != nil {
		return nil, fmt.Errorf("histogram: %w", err)
	}
	return json.Marshal(document{h.count, h.Min(), h.Max(), h.negative, h.overflow, string(encoded)})
}

// UnmarshalJSON decodes what MarshalJSON encoded, and refuses what it cannot have encoded.
func (h *Histogram) UnmarshalJSON(text []byte) error {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	from, err := hdrhistogram.Decode([]byte(d.HDR))
	if err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	if from.LowestTrackableValue() != 1 || from.HighestTrackableValue() != Highest || from.SignificantFigures() != digits {
		return fmt.Errorf("histogram: the layout is %d to %d with %d digits, not 1 to %d with %d",
			from.LowestTrackableValue(), from.HighestTrackableValue(), from.SignificantFigures(), Highest, digits)
	}
	decoded := Histogram{min: d.Min, max: d.Max, count: d.Count, negative: d.Negative, overflow: d.Overflow}
	for i, c := range from.Export().Counts {
		if c != 0 {
			decoded.row(i >> rowBits)[i&rowMask] = uint64(c)
		}
	}
	if err := decoded.check(uint64(from.TotalCount())); err != nil {
		return err
	}
	*h = decoded
	return nil
}

// check tells whether the exact numbers fit the buckets, which hold total values.
func (h *Histogram) check(total uint64) error {
	bounded := *h
	bounded.bound()
	var atHighest uint64
	if top := index(Highest); h.rows[top>>rowBits] != nil {
		atHighest = h.rows[top>>rowBits][top&rowMask]
	}
	switch {
	case h.count != total:
		return fmt.Errorf("histogram: count %d, but %d values", h.count, total)
	case h.min < 0 || h.max > Highest || h.min > h.max || bounded.min != h.min || bounded.max != h.max || !h.reaches():
		return fmt.Errorf("histogram: min %d and max %d do not fit the values", h.min, h.max)
	case h.overflow > atHighest:
		return fmt.Errorf("histogram: overflow %d, but only %d values that high", h.overflow, atHighest)
	}
	return nil
}

// reaches tells whether there are values in the buckets of both extremes.
func (h *Histogram) reaches() bool {
	if h.count == 0 {
		return true
	}
	for _, v := range []int64{h.min, h.max} {
		i := index(v)
		if row := h.rows[i>>rowBits]; row == nil || row[i&rowMask] == 0 {
			return false
		}
	}
	return true
}

// Log writes interval histograms in the log format 1.3 of HdrHistogram, .hlog: one line for each interval and tag, each
// with the complete distribution.
type Log struct {
	w *hdrhistogram.HistogramLogWriter
}

// NewLog begins a log of a run that started at start.
func NewLog(w io.Writer, start time.Time) (*Log, error) {
	log := hdrhistogram.NewHistogramLogWriter(w)
	begun := fmt.Sprintf("[StartTime: %.3f (seconds since epoch), %s]",
		float64(start.UnixMilli())/1e3, start.UTC().Format(time.RFC3339))
	if err := errors.Join(log.OutputLogFormatVersion(), log.OutputComment(begun), log.OutputLegend()); err != nil {
		return nil, fmt.Errorf("hlog: %w", err)
	}
	return &Log{log}, nil
}

// Write adds the histogram of the interval from one time to another, known to the millisecond. The tag tells several series of one log apart
// and may be empty; commas, spaces and line breaks in it are an error.
func (l *Log) Write(tag string, from, to time.Time, interval *Histogram) error {
	if strings.ContainsAny(tag, ", \t\r\n") {
		return fmt.Errorf("hlog: the tag %q has a comma, a space or a line break in it", tag)
	}
	h := interval.HDR()
	h.SetTag(tag)
	h.SetStartTimeMs(from.UnixMilli())
	h.SetEndTimeMs(to.UnixMilli())
	if err := l.w.OutputIntervalHistogram(h); err != nil {
		return fmt.Errorf("hlog: %w", err)
	}
	return nil
}
