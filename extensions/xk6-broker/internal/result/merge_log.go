package result

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// overTime makes of the processes' interval logs the quantiles over time of the sum, and its logs. An interval of a process falls whole into that of
// the whole in which it ends, as its point of the history has: so what is cut at an instant has the same messages in both. Where a process has no log
// of all that it measured, the quantiles stay those of the process that had the worst.
func (m *merger) overTime() {
	for i := range m.result.Topics {
		for trend := range metric.Trend(metric.NumTrends) {
			m.trendOverTime(&m.result.Topics[i], trend)
		}
	}
}

func (m *merger) trendOverTime(t *Topic, trend metric.Trend) {
	logs := m.logs(t, trend)
	defer func() {
		for _, l := range logs {
			l.stop()
		}
	}()
	var lines []loggedLine
	for _, l := range logs {
		l.advance()
	}
	for {
		end := math.Inf(1)
		for _, l := range logs {
			end = min(end, l.end)
		}
		if math.IsInf(end, 1) {
			break
		}
		sums := map[string]*hist.Histogram{}
		for _, l := range logs {
			for ; l.end == end; l.advance() {
				tag := l.tag(t)
				sums[tag] = hist.Merged(sums[tag], l.line.Histogram)
			}
		}
		for tag, h := range sums {
			lines = append(lines, loggedLine{end, tag, h.Pack()})
		}
	}
	for _, l := range logs {
		if err := l.unsound(); err != nil {
			if m.unlogged[l.part] == nil {
				m.unlogged[l.part] = err
			}
			return
		}
	}
	if len(lines) == 0 {
		return
	}
	slices.SortFunc(lines, func(a, b loggedLine) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.tag, b.tag)) })
	t.summarise(trend, lines)
	started, length := m.result.Started, t.History[0].Seconds
	m.result.Logs = append(m.result.Logs, IntervalLog{Broker: t.Broker, Topic: t.Topic, Trend: trend, Write: func(w io.Writer) error {
		log, err := hist.NewLog(w, started)
		if err != nil {
			return err
		}
		at := func(seconds float64) time.Time { return started.Add(time.Duration(seconds * float64(time.Second))) }
		for _, line := range lines {
			h := &hist.Histogram{}
			line.AddTo(h)
			if err := log.Write(line.tag, at(line.end-length), at(line.end), h); err != nil {
				return err
			}
		}
		return nil
	}})
}

// loggedLine is what all processes measured in an interval of the whole, under one tag.
type loggedLine struct {
	end float64 // in seconds from the start
	tag string
	hist.Packed
}

// summarise gives a trend's distribution over time, in intervals that are long enough to say something, see [LengthFor].
func (t *Topic) summarise(trend metric.Trend, lines []loggedLine) {
	names := map[string][][]loggedLine{} // by the name of the trend, for each interval of the history
	for _, line := range lines {
		name, _, _ := t.Tagged(trend, line.tag)
		if names[name] == nil {
			names[name] = make([][]loggedLine, len(t.History))
		}
		i, _ := slices.BinarySearchFunc(t.History, line.end, func(p Point, end float64) int { return cmp.Compare(p.At, end) })
		names[name][i] = append(names[name][i], line)
	}
	for name, all := range names {
		counts := make([]uint64, len(all))
		for i, lines := range all {
			for _, line := range lines {
				counts[i] += line.Count()
			}
		}
		t.OverTime[name] = nil
		first := 0
		for together := range slices.Chunk(all, LengthFor(counts)) {
			h := &hist.Histogram{}
			for _, line := range slices.Concat(together...) {
				line.AddTo(h)
			}
			from, to := t.History[first], t.History[first+len(together)-1]
			t.OverTime[name] = append(t.OverTime[name], Summarise(h, to.At, to.At-from.At+from.Seconds))
			first += len(together)
		}
	}
}

// processLog is what one process has in the log of a trend of a topic, line by line.
type processLog struct {
	part    int
	topic   *Topic // of the process
	trend   metric.Trend
	started time.Time
	shift   float64 // of the process's start, in seconds from that of the whole
	length  float64 // of the intervals of the whole

	next func() (hist.Interval, error, bool)
	stop func()

	line hist.Interval
	end  float64 // of the interval of the whole that the line is in; infinite when there are no more
	sums map[string]*hist.Histogram
	err  error
}

// logs are those of the processes that measured the trend.
func (m *merger) logs(t *Topic, trend metric.Trend) (all []*processLog) {
	key := m.key(t.Broker, t.Driver, t.Topic)
	for i, p := range m.parts {
		for k := range p.Result.Topics {
			of := &p.Result.Topics[k]
			if m.key(of.Broker, of.Driver, of.Topic) != key || !of.has(trend) {
				continue
			}
			read := func(yield func(hist.Interval, error) bool) {
				yield(hist.Interval{}, errors.New("it left no interval logs"))
			}
			if p.Log != nil {
				read = p.Log(of, trend)
			}
			l := &processLog{
				part: i, topic: of, trend: trend, started: p.Result.Started, shift: p.Result.Started.Sub(m.result.Started).Seconds(), length: m.lengths[key][""],
				sums: map[string]*hist.Histogram{},
			}
			l.next, l.stop = iter.Pull2(read)
			all = append(all, l)
		}
	}
	return all
}

// names are those that a trend has in a result.
func names(trend metric.Trend) []string { return []string{trend.String(), trend.In(metric.Closed)} }

func (t *Topic) has(trend metric.Trend) bool {
	return slices.ContainsFunc(names(trend), func(name string) bool { return t.Trends[name] != nil && t.Trends[name].Count() > 0 })
}

// advance goes on to the next line.
func (l *processLog) advance() {
	before := l.end
	l.end = math.Inf(1)
	line, err, more := l.next()
	if !more || err != nil {
		l.err = err
		return
	}
	to, points := line.To.Sub(l.started).Seconds(), l.topic.History
	i := sort.Search(len(points), func(i int) bool { return points[i].At >= to-1e-6 })
	if i == len(points) || line.From.Sub(l.started).Seconds() < points[i].At-points[i].Seconds-2e-3 { // the log knows milliseconds
		l.err = fmt.Errorf("an interval of its .hlog of %v that ends at %v is in none of its history", l.trend, line.To)
		return
	}
	end := at(points[i].At+l.shift, l.length)
	if end < before {
		l.err = fmt.Errorf("its .hlog of %v goes back at %v", l.trend, line.To)
		return
	}
	name, _, _ := l.topic.Tagged(l.trend, line.Tag)
	l.sums[name] = hist.Merged(l.sums[name], line.Histogram)
	l.line, l.end = line, end
}

// tag is what the line has in the log of the whole.
func (l *processLog) tag(whole *Topic) string {
	loop, _ := loopOf(l.line.Tag)
	if !l.trend.Consumers() || len(whole.Groups) < 2 {
		return TagOf(loop, "")
	}
	_, group, err := l.topic.Tagged(l.trend, l.line.Tag)
	if err != nil { // then a part of the whole cannot be cut out of it, which will say why
		return TagOf(loop, "")
	}
	return TagOf(loop, l.topic.Groups[group].Group)
}

// unsound is why the log is not that of all that the process measured.
func (l *processLog) unsound() error {
	if l.err != nil {
		return l.err
	}
	for _, name := range names(l.trend) {
		whole := l.topic.Trends[name]
		if whole == nil || whole.Count() == 0 {
			continue
		}
		if l.sums[name] == nil || !l.sums[name].SameDistribution(whole) {
			return fmt.Errorf("its .hlog of %s does not have all that it measured: it ended early, or is of another run", name)
		}
	}
	return nil
}
