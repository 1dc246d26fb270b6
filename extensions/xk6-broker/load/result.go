package load

import (
	"maps"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
)

// ResultVersion is the version of the schema of [Result].
const ResultVersion = 1

// Result is everything that a run found out.
type Result struct {
	Version     int               `json:"version"`
	Name        string            `json:"name"`
	Run         uint32            `json:"run"`      // the same in all processes of one test
	Instance    uint32            `json:"instance"` // this process
	Started     time.Time         `json:"started"`
	Seconds     float64           `json:"seconds"`
	Environment map[string]string `json:"environment"` // versions, machine
	Topics      []TopicResult     `json:"topics"`
	Dropped     uint64            `json:"dropped"`  // arrivals that k6 dropped because no VU was free
	Unserved    uint64            `json:"unserved"` // arrivals of open-arrival-rate that never had an iteration
	CPU         float64           `json:"cpu"`      // the share of its CPUs that the process used, 0 to 1
	Verdict     Verdict           `json:"verdict"`
}

// TopicResult is what was measured on one topic of one broker.
type TopicResult struct {
	Broker      string                       `json:"broker"` // address, without credentials
	Driver      string                       `json:"driver"`
	Topic       string                       `json:"topic"`
	Info        driver.Info                  `json:"info"`
	Confirm     string                       `json:"confirm"`  // what "confirmed" means here
	OpenLoop    bool                         `json:"openLoop"` // sent by a schedule; in a closed loop due is sent
	Options     map[string]map[string]any    `json:"options"`  // as resolved, by "producer" and "consumer"
	Counts      map[string]int64             `json:"counts"`
	Errors      []ErrorCount                 `json:"errors"`
	Trends      map[string]*hist.Histogram   `json:"trends"`
	Percentiles map[string][]hist.Percentile `json:"percentiles"` // of each trend, read from its histogram
	Groups      []Accounting                 `json:"groups"`      // empty: nothing was received here, loss was not observed
	History     []Point                      `json:"history"`
}

// ErrorCount counts errors of one sort.
type ErrorCount struct {
	Op    string      `json:"op"`
	Kind  driver.Kind `json:"kind"`
	Count int64       `json:"count"`
}

// Result sums up the run. The caller adds what it knows of the environment, and asks for the verdict.
func (c *Collector) Result() *Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &Result{
		Version: ResultVersion, Run: c.run.ID, Instance: c.run.instance,
		Started: time.Unix(0, c.run.Started).UTC(),
		Seconds: seconds(driver.Now() - c.run.Started),
		Topics:  []TopicResult{},
	}
	for _, t := range c.run.Topics() {
		key := topicKey{t.Address.String(), t.Name}
		result := t.result()
		for _, s := range c.run.All() {
			if (topicKey{s.Broker, s.Topic}) == key {
				result.add(s)
			}
		}
		result.History = append([]Point{}, c.history[key]...)
		result.Describe()
		r.Topics = append(r.Topics, result)
	}
	return r
}

// shownQuantiles are those that a result spells out; any other can be read from its histograms.
var shownQuantiles = []float64{0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 1} //nolint:gochecknoglobals // a table

// Describe spells out the percentiles of the trends. It is called again where the trends have changed.
func (t *TopicResult) Describe() {
	t.Percentiles = make(map[string][]hist.Percentile, len(t.Trends))
	for name, h := range t.Trends {
		t.Percentiles[name] = h.Percentiles(shownQuantiles)
	}
}

func (t *Topic) result() TopicResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.Address.Driver
	result := TopicResult{
		Broker: t.Address.String(), Driver: d.Name, Topic: t.Name, Confirm: d.Features.Confirm.String(),
		Options: map[string]map[string]any{}, Counts: map[string]int64{}, Trends: map[string]*hist.Histogram{},
		Info: t.info, Errors: []ErrorCount{}, Groups: []Accounting{},
	}
	for of, values := range t.resolved {
		result.Options[of] = d.Redact(values)
	}
	for _, g := range t.order {
		result.Groups = append(result.Groups, g.accounting())
	}
	return result
}

func (t *TopicResult) add(s *Series) {
	t.OpenLoop = t.OpenLoop || s.openLoop.Load()
	for i := range s.counters {
		if n := s.counters[i].Load(); n != 0 {
			t.Counts[Counter(i).String()] += n
		}
	}
	for i := range s.trends {
		if all := s.Trend(Trend(i)); all.Count() > 0 || all.Negative() > 0 {
			name := Trend(i).String()
			t.Trends[name] = merge(t.Trends[name], all)
		}
	}
	errors := s.Errors()
	for _, labels := range slices.SortedFunc(maps.Keys(errors), compareErrors) {
		t.addErrors(labels, errors[labels])
	}
}

func (t *TopicResult) addErrors(labels ErrorLabels, n int64) {
	i := slices.IndexFunc(t.Errors, func(e ErrorCount) bool { return e.Op == labels.Op && e.Kind == labels.Kind })
	if i < 0 {
		i = len(t.Errors)
		t.Errors = append(t.Errors, ErrorCount{Op: labels.Op, Kind: labels.Kind})
	}
	t.Errors[i].Count += n
}

func compareErrors(a, b ErrorLabels) int {
	if a.Op != b.Op {
		if a.Op < b.Op {
			return -1
		}
		return 1
	}
	if a.Kind < b.Kind {
		return -1
	}
	return 1
}

// note keeps what a result says about how a topic was used.
func (t *Topic) note(conn driver.Conn, of string, options driver.Values) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conn = conn
	t.resolved[of] = options
	if informer, ok := conn.(driver.Informer); ok {
		t.info = informer.Info()
	}
}

// Lost sums what is lost over all groups. observed is false where nothing was received anywhere: then nothing is known.
func (r *Result) Lost() (lost uint64, observed bool) {
	for _, t := range r.Topics {
		for _, g := range t.Groups {
			observed = true
			lost += g.Lost
		}
	}
	return lost, observed
}
