package schedule

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

type trace struct {
	due  []time.Duration
	most int // in any one second
}

// Trace reads due times from a text, one a line: seconds as a decimal number ("12.5", "1e-3"), or a duration as
// [time.ParseDuration] has it ("12s500ms"), since the start. What follows a # is a comment, and lines without a due time are
// skipped. Due times are exact to the nanosecond, must not decrease, and take 8 bytes of memory each. An error names the line.
func Trace(r io.Reader) (Schedule, error) {
	t := &trace{}
	lines := bufio.NewScanner(r)
	number, earliest := 0, 0
	for lines.Scan() {
		number++
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		due, err := parseDue(text)
		if err != nil {
			return nil, fmt.Errorf("trace: line %d: %w", number, err)
		}
		if n := len(t.due); n > 0 && due < t.due[n-1] {
			return nil, fmt.Errorf("trace: line %d: %s is before %v, the due time that precedes it", number, text, t.due[n-1])
		}
		t.due = append(t.due, due)
		for due-t.due[earliest] >= time.Second {
			earliest++
		}
		t.most = max(t.most, len(t.due)-earliest)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("trace: line %d: %w", number+1, err)
	}
	if len(t.due) == 0 {
		return nil, errors.New("trace: there is no due time in it")
	}
	return t, nil
}

func (t *trace) At(n uint64) (time.Duration, bool) {
	if n >= uint64(len(t.due)) {
		return 0, false
	}
	return t.due[n], true
}

func (t *trace) count() (uint64, bool) { return uint64(len(t.due)), true }

func (t *trace) peak() float64 { return float64(t.most) }

func (t *trace) String() string {
	return fmt.Sprintf("trace of %d arrivals in %v", len(t.due), t.due[len(t.due)-1])
}

// parseDue reads one due time.
func parseDue(s string) (time.Duration, error) {
	due, isSeconds, err := parseSeconds(s)
	if !isSeconds {
		due, err = time.ParseDuration(s)
	}
	switch {
	case errors.Is(err, errTooLate):
		return 0, fmt.Errorf("%s is later than a schedule can hold, 292 years", s)
	case err != nil:
		return 0, fmt.Errorf(`%q is neither seconds such as "1.25" nor a duration such as "1s250ms"`, s)
	case due < 0:
		return 0, fmt.Errorf("%s is before the start", s)
	}
	return due, nil
}

var errTooLate = errors.New("too late")

// parseSeconds reads a decimal number of seconds, to the nearest nanosecond. A number without exponent, which is what most traces
// have, is read digit by digit, because a float64 would not be exact after 104 days. isSeconds is false if s is no number.
func parseSeconds(s string) (due time.Duration, isSeconds bool, err error) {
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, false, nil
	}
	if strings.ContainsAny(s, "eE+-") {
		seconds, err := strconv.ParseFloat(s, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(seconds) {
			return 0, false, nil
		}
		ns := math.Round(seconds * float64(time.Second))
		if math.Abs(ns) >= forever {
			return 0, true, errTooLate
		}
		return time.Duration(ns), true, nil
	}
	whole, part, _ := strings.Cut(s, ".")
	if whole+part == "" || strings.Contains(part, ".") {
		return 0, false, nil
	}
	roundUp := len(part) > 9 && part[9] >= '5'
	part = (part + "000000000")[:9]
	ns, err := strconv.ParseUint(whole+part, 10, 63)
	if roundUp {
		ns++
	}
	if err != nil || ns > forever {
		return 0, true, errTooLate
	}
	return time.Duration(ns), true, nil
}
