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

// Trace reads due times since the start, one a line: seconds as a number ("12.5", "1e-3") or a
// duration ("12s500ms"). The rest of a line after a # is a comment. Due times must not decrease,
// and take 8 bytes of memory each. An error names the line.
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
			return nil, fmt.Errorf("trace: line %d: %s is before %v, the due time that precedes it",
				number, text, t.due[n-1])
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

// parseDue reads one due time, seconds to the nearest nanosecond.
func parseDue(text string) (time.Duration, error) {
	ns, err := strconv.ParseFloat(text, 64)
	ns = math.Round(ns * float64(time.Second))
	if err != nil {
		due, durationErr := time.ParseDuration(text)
		ns, err = float64(due), durationErr
	}
	if err != nil {
		return 0, fmt.Errorf(`%q is neither seconds such as "1.25" nor a duration such as "1s250ms"`, text)
	}
	if !(ns >= 0 && ns < forever) { // NaN too
		return 0, fmt.Errorf("%s is not from 0 to 292 years", text)
	}
	return time.Duration(ns), nil
}

func (t *trace) At(n uint64) (time.Duration, bool) {
	if n >= uint64(len(t.due)) {
		return 0, false
	}
	return t.due[n], true
}

func (t *trace) count() (uint64, bool) { return uint64(len(t.due)), true }

func (t *trace) peak() float64 { return float64(t.most) }

func (t *trace) fork() Schedule { return t }
