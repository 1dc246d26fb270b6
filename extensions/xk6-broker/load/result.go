package load

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
)

// ResultVersion is the version of the schema of [Result].
const ResultVersion = 2

// Result is everything that a run found out.
type Result struct {
	Version     int               `json:"version"`
	Name        string            `json:"name"`
	Run         uint32            `json:"run"`      // the same in all processes of one test
	Instance    uint32            `json:"instance"` // this process
	Started     time.Time         `json:"started"`
	Seconds     float64           `json:"seconds"`
	Processes   int               `json:"processes,omitempty"` // of the test, as somebody said; 0 where nobody did
	Test        Test              `json:"test"`
	Thresholds  []Threshold       `json:"thresholds"`
	Checks      []Check           `json:"checks"`
	Marks       []Annotation      `json:"marks"`
	Environment map[string]string `json:"environment"` // versions, machine
	Topics      []TopicResult     `json:"topics"`
	Dropped     uint64            `json:"dropped"`  // arrivals that k6 dropped because no VU was free
	Unserved    uint64            `json:"unserved"` // arrivals of open-arrival-rate that never had an iteration
	CPU         float64           `json:"cpu"`      // the share of its CPUs that the process used, 0 to 1
	Platform    *Platform         `json:"platform,omitempty"`
	Verdict     Verdict           `json:"verdict"`

	siblings int   // other processes that messages came from
	logsCut  error // why the interval logs ended before the run did
}

// TopicResult is what was measured on one topic of one broker.
type TopicResult struct {
	Broker      string                     `json:"broker"` // address, without credentials
	Driver      string                     `json:"driver"`
	Topic       string                     `json:"topic"`
	Info        driver.Info                `json:"info"`
	Confirm     string                     `json:"confirm"`    // the least that a confirmation proved; "" where nobody sent
	Proofs      []Proof                    `json:"proofs"`     // what confirmations proved, by the producers' options
	OpenLoop    bool                       `json:"openLoop"`   // sent by a schedule; in a closed loop due is sent
	ClosedLoop  bool                       `json:"closedLoop"` // something was sent by no schedule
	Declared    bool                       `json:"declared"`   // the script has a consumer for it
	Options     Uses                       `json:"options"`    // in force for each that used it
	Counts      map[string]int64           `json:"counts"`
	Errors      []ErrorCount               `json:"errors"`
	Trends      map[string]*hist.Histogram `json:"trends"`      // of a topic with both loops, those of the closed one with the suffix "_closed"
	Percentiles map[string][]Percentile    `json:"percentiles"` // of each trend, read from its histogram
	Groups      []GroupResult              `json:"groups"`      // empty: nobody consumed here, loss was not observed
	History     []Point                    `json:"history"`
	OverTime    map[string][]Summary       `json:"overTime"` // of each trend, in intervals long enough for a p99 where there are any

	shared  bool            // other processes of the test may use it, and what they know is not in here
	alone   bool            // there is no other process
	before  int64           // messages that this test sent long before the process that received them began
	routed  bool            // some of its messages went where their keys said
	after   int64           // messages that were confirmed when the consumers, for which the broker keeps nothing, had been told that there was no more
	hiccups *hist.Histogram // of the platform, while the topic was in use

	interrupted map[goal]interruptions
}

// GroupResult is what was measured of one group of consumers, and what became of its messages.
type GroupResult struct {
	Accounting
	Members     int                        `json:"members"` // how many consumers were in it at most at a time, subscribers together
	Trends      map[string]*hist.Histogram `json:"trends"`  // of the consumers' side
	Percentiles map[string][]Percentile    `json:"percentiles"`

	kept      bool       // the broker keeps what it has received until it is settled
	strangers int64      // received that no producer of the topic sent, as this process knows
	passed    []passedBy // of these, what is known of each topic that they were sent to
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
		Version: ResultVersion, Run: c.run.ID, Instance: c.run.instance, Processes: c.run.processes, siblings: c.run.heardOf(),
		Started: time.Unix(0, c.run.Started).UTC(),
		Seconds: seconds(driver.Now() - c.run.Started),
		Test:    Test{Scenarios: []Scenario{}}, Thresholds: []Threshold{}, Checks: []Check{}, Marks: []Annotation{}, Topics: []TopicResult{},
		Platform: c.platform.result(),
		logsCut:  c.logs.cut,
	}
	for _, t := range c.run.Topics() {
		key := topicKey{t.Address.String(), t.Name}
		result := t.result()
		for _, s := range c.run.All() {
			if (topicKey{s.Broker, s.Topic}) == key {
				result.add(s)
			}
		}
		if !result.used() {
			continue // a script may describe what it then does not use
		}
		if over := t.over.Load(); over > 0 && t.forgets() {
			result.after = result.Counts[Confirmed.String()] - (over - 1)
		}
		result.settles(t.Address.Driver.Features)
		result.plain()
		result.hiccups = r.Platform.seen()
		result.History, result.OverTime = []Point{}, map[string][]Summary{}
		if t := c.timelines[key]; t != nil {
			all := t.all()
			result.History, result.OverTime = history(all, c.run.Started), overTime(all, c.run.Started, result.OpenLoop)
		}
		r.Topics = append(r.Topics, result)
	}
	r.passes(c.run)
	r.Describe()
	return r
}

// shownQuantiles are those that a result spells out; any other can be read from its histograms.
var shownQuantiles = []float64{0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 1}

// Percentile is one point of a distribution, and how far it can be believed.
type Percentile struct {
	hist.Percentile
	Owed     float64 `json:"owed"`     // the share of it that is the generator's or the platform's lateness, 0 to 1
	Believed bool    `json:"believed"` // it is supported, and neither that share nor what is missing from the distribution can mislead
}

// Describe spells out the percentiles of all topics, as they are where a result has been read or put together.
func (r *Result) Describe() {
	for i := range r.Topics {
		r.Topics[i].hiccups = r.Platform.seen()
		r.Topics[i].Describe()
	}
}

// Describe spells out the percentiles of the trends. It is called again where the trends have changed.
func (t *TopicResult) Describe() {
	t.Percentiles = t.spell(t.Trends, nil)
	for i := range t.Groups {
		g := &t.Groups[i]
		g.Percentiles = t.spell(g.Trends, g)
	}
}

func (t *Topic) result() TopicResult {
	accounts, members, strangers := t.accounts(), t.members(), t.strangers()
	t.mu.Lock()
	defer t.mu.Unlock()
	result := TopicResult{
		Broker: t.Address.String(), Driver: t.Address.Driver.Name, Topic: t.Name, Proofs: []Proof{},
		Options: t.uses.sorted(), Counts: map[string]int64{}, Trends: map[string]*hist.Histogram{},
		Info: t.info, Errors: []ErrorCount{}, Groups: []GroupResult{},
		shared: t.shared(), alone: !t.shared(), routed: t.routed.Load(), Declared: t.declared.Load(),
		interrupted: maps.Clone(t.interrupted),
	}
	for _, p := range slices.AppendSeq(slices.Clone(t.proven), maps.Values(t.proofs)) {
		select {
		case <-p.known:
			result.proves(p.Proof)
		default:
		}
	}
	for _, a := range accounts {
		if result.shared && a.Subscribers == 0 { // what was removed another process may have received before
			a.Missing, a.Elsewhere, a.Removed = a.Missing+a.Removed, a.Elsewhere+a.Removed, 0
		}
		result.Groups = append(result.Groups, GroupResult{
			Accounting: a, Members: members[a.Group], Trends: map[string]*hist.Histogram{},
			kept: a.Subscribers == 0 && t.groups[a.Group].keepsReceived(), strangers: strangers[a.Group],
		})
	}
	return result
}

func (t *TopicResult) add(s *Series) {
	t.OpenLoop = t.OpenLoop || s.sent[Open].Load()
	t.ClosedLoop = t.ClosedLoop || s.sent[Closed].Load()
	for i := range s.counters {
		if n := s.counters[i].Load(); n != 0 {
			t.Counts[Counter(i).String()] += n
		}
	}
	g := slices.IndexFunc(t.Groups, func(g GroupResult) bool { return g.Group == s.Group })
	for l := range Loop(NumLoops) {
		for i := range Trend(NumTrends) {
			all := s.Trend(l, i)
			if all.Count() == 0 && all.Negative() == 0 {
				continue
			}
			name := nameOf(l, i)
			t.Trends[name] = merge(t.Trends[name], all)
			if g >= 0 && i.Consumers() {
				of := t.Groups[g].Trends
				of[name] = merge(of[name], all)
			}
		}
	}
	errors := s.Errors()
	for _, labels := range slices.SortedFunc(maps.Keys(errors), compareErrors) {
		t.addErrors(labels, errors[labels])
	}
}

// used tells whether anything was done with the topic, beyond its creation.
func (t *TopicResult) used() bool {
	return t.OpenLoop || t.ClosedLoop || len(t.Counts) > 0 || len(t.Errors) > 0 || len(t.Groups) > 0 || len(t.Options["producer"]) > 0
}

// plain gives the latencies of a topic without open loop their plain names. Messages that came from elsewhere may be of one, too.
func (t *TopicResult) plain() {
	if t.OpenLoop = t.OpenLoop || t.Trends[E2ELatency.String()] != nil; t.OpenLoop {
		return
	}
	t.Trends = plain(t.Trends)
	for i := range t.Groups {
		t.Groups[i].Trends = plain(t.Groups[i].Trends)
	}
}

// plain takes the suffix off. The trends that no loop is known of, as settle time, keep what they have.
func plain(trends map[string]*hist.Histogram) map[string]*hist.Histogram {
	named := make(map[string]*hist.Histogram, len(trends))
	for name, h := range trends {
		name = strings.TrimSuffix(name, ClosedSuffix)
		named[name] = merge(named[name], h)
	}
	return named
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

// connected keeps a connection that the topic is used by, and what that says of the broker.
func (t *Topic) connected(conn driver.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conn = conn
	if informer, ok := conn.(driver.Informer); ok {
		t.info = informer.Info()
	}
}

// Loop takes the name of one of the topic's trends apart: the name of its metric, and the loop that it is of, "open" or "closed"; "" where
// loops are not told apart.
func (t *TopicResult) Loop(name string) (trend, loop string) {
	trend, closed := strings.CutSuffix(name, ClosedSuffix)
	i := slices.Index(trendNames[:], trend)
	switch {
	case i < 0 || !Trend(i).Looped():
		return trend, ""
	case closed || !t.OpenLoop:
		return trend, Closed.String()
	}
	return trend, Open.String()
}
