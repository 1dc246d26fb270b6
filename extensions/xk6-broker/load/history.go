package load

import (
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
)

// Point is one interval of a topic's history.
type Point struct {
	At          float64               `json:"at"`      // seconds from the start to the end of the interval
	Seconds     float64               `json:"seconds"` // its length
	Counts      map[string]int64      `json:"counts"`
	Errors      int64                 `json:"errors"`
	ErrorKinds  map[driver.Kind]int64 `json:"errorKinds,omitempty"` // the errors by kind
	InFlight    int64                 `json:"inFlight"`             // of the whole process: handed over and not yet done, at the end of the interval
	Outstanding uint64                `json:"outstanding"`          // expected by the groups and not yet received, as this process knows
	Backlog     map[string]int64      `json:"backlog,omitempty"`    // what the broker last said that it holds for each group
	CPU         float64               `json:"cpu"`                  // the share of its CPUs that the process used, 0 to 1
	Latencies   map[string]Summary    `json:"latencies"`            // by trend, in ns
}

// Summary is a distribution in five numbers; ns.
type Summary struct {
	Count uint64 `json:"count"`
	P50   int64  `json:"p50"`
	P90   int64  `json:"p90"`
	P99   int64  `json:"p99"`
	P999  int64  `json:"p999"`
	Max   int64  `json:"max"`
}

func summarise(h *hist.Histogram) Summary {
	return Summary{
		Count: h.Count(), P50: h.Quantile(0.5), P90: h.Quantile(0.9), P99: h.Quantile(0.99),
		P999: h.Quantile(0.999), Max: h.Max(),
	}
}

// queues adds to a point what waits for the groups of its topic.
func (t *Topic) queues(p *Point) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mark(driver.Now())
	for _, g := range t.order {
		p.Outstanding += g.track.Outstanding()
		if n := g.queued.Load(); n > 0 {
			if p.Backlog == nil {
				p.Backlog = map[string]int64{}
			}
			p.Backlog[g.account] = n - 1
		}
	}
}

// IntervalLog is the log of one trend of one topic in the format .hlog.
type IntervalLog struct {
	Broker, Topic string
	Trend         Trend
	Text          []byte
}

// Logs gives what the interval logs hold so far, in the order of the topics and trends.
func (c *Collector) Logs() []IntervalLog {
	c.mu.Lock()
	defer c.mu.Unlock()
	var logs []IntervalLog
	for _, t := range c.run.Topics() {
		key := topicKey{t.Address.String(), t.Name}
		for trend := range Trend(NumTrends) {
			if l := c.logs[key][trend]; l != nil {
				text := append([]byte(nil), l.text.Bytes()...)
				logs = append(logs, IntervalLog{key.address, key.name, trend, text})
			}
		}
	}
	return logs
}

// named gives the points of a topic without open loop the plain names of its latencies.
func named(history []Point, open bool) []Point {
	points := append([]Point{}, history...)
	if open {
		return points
	}
	for i, p := range points {
		points[i].Latencies = make(map[string]Summary, len(p.Latencies))
		for name, s := range p.Latencies {
			points[i].Latencies[strings.TrimSuffix(name, ClosedSuffix)] = s
		}
	}
	return points
}
