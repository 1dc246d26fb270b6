package engine

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// process makes the bench of one of several processes of a test on the broker of b.
func (b *bench) process(name string) *bench {
	p := *b
	p.run = NewRun(name, 0)
	p.run.sleep = machine.Timer
	p.topic = p.run.Topic(b.topic.Address, "orders")
	p.series = p.run.Series(Labels{Broker: b.topic.Address.String(), Driver: b.topic.Address.Driver.Name, Topic: "orders"})
	return &p
}

// part is what a process leaves behind, its ledger read from what was written.
func (b *bench) part(name string, c *Collector) verdict.Part {
	b.t.Helper()
	c.Collect()
	r := c.Result()
	r.Name = name
	verdict.Judge(r, verdict.Circumstances{})
	var text bytes.Buffer
	if err := b.run.Ledger().Write(&text); err != nil {
		b.t.Fatal(err)
	}
	whole := text.Bytes()
	l, err := account.ReadLedger(bytes.NewReader(whole))
	if err != nil {
		b.t.Fatal(err)
	}
	var file bytes.Buffer
	if err := r.Recording.Write(&file); err != nil {
		b.t.Fatal(err)
	}
	of, err := recording.Read(&file)
	if err != nil {
		b.t.Fatal(err)
	}
	return verdict.Part{Result: r, Ledger: l, Recording: of}
}

func (b *bench) end() {
	b.t.Helper()
	if err := b.run.Finish(b.t.Context(), Drain{Limit: time.Minute}); err != nil {
		b.t.Error(err)
	}
}

// Two processes send, a group has a member in each, and seven messages vanish: together the processes know exactly that.
func TestProcessesOfOneTestMergeIntoTheExactAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		one, two := b.process("test"), b.process("test")
		collectors := []*Collector{one.run.NewCollector(), two.run.NewCollector()}
		thief, err := b.conn.NewConsumer(t.Context(), driver.ConsumerConfig{Topic: "orders", Group: "workers", Prefetch: 7, Start: driver.StartNew})
		if err != nil {
			t.Fatal(err)
		}
		reading := two.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 2000})
		one.consumer(driver.ConsumerConfig{Group: "workers"})
		one.produce(one.sender(100), 1000)
		stolen := make(driver.Batch, 7)
		for n := 0; n < len(stolen); {
			got, err := thief.Receive(t.Context(), stolen[n:])
			if err != nil {
				t.Fatal(err)
			}
			n += got
		}
		if err := thief.Settle(t.Context(), stolen, driver.Ack); err != nil {
			t.Fatal(err)
		}
		if err := thief.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		in := two.receive(reading, 300)
		if err := reading.Settle(t.Context(), in, 0, 300, driver.Ack); err != nil {
			t.Fatal(err)
		}
		two.produce(two.sender(100), 500)
		time.Sleep(time.Second)
		one.end()
		time.Sleep(time.Second)
		in = two.receive(reading, 1193)
		if err := reading.Settle(t.Context(), in, 0, 1193, driver.Ack); err != nil {
			t.Fatal(err)
		}
		two.end()
		parts := []verdict.Part{one.part("one", collectors[0]), two.part("two", collectors[1])}
		if alone := parts[0].Result.Topics[0].Groups[0]; alone.Missing != 1000 || alone.Lost != 0 || alone.Uncertain+alone.Undelivered != alone.Missing {
			t.Errorf("one process alone: %+v", alone)
		}
		verdict.AddThreshold(parts[0].Result, result.Threshold{Metric: "broker_lost", Source: "count==0", Decision: verdict.Undecided("only all processes together know")})
		merged, err := verdict.Merge(parts, verdict.Siblings{Processes: 2})
		if err != nil {
			t.Fatal(err)
		}
		if len(merged.Thresholds) != 0 || reasontest.Has(merged.Verdict.Reasons, "threshold-not-judged") {
			t.Errorf("a threshold of one process speaks against all together: %q", reasontest.Codes(merged.Verdict.Reasons))
		}
		topic := merged.Topics[0]
		a := topic.Groups[0]
		if len(topic.Groups) != 1 || a.Expected != 1500 || a.Received != 1493 || a.Lost != 7 || a.Undelivered != 0 || a.Duplicated != 0 || a.Foreign != 0 {
			t.Errorf("%+v", topic.Groups)
		}
		if sent, foreign := topic.Counts["sent"], topic.Counts["foreign"]; sent != 1500 || foreign != 0 {
			t.Errorf("sent %d, foreign %d", sent, foreign)
		}
		if n := topic.Trends["publish_latency"].Count(); n != 1500 {
			t.Errorf("%d publish latencies", n)
		}
		if n := topic.Trends["e2e_latency"].Count(); n != 1493 {
			t.Errorf("%d end-to-end latencies", n)
		}
		var sent int64
		for _, p := range topic.History {
			sent += p.Counts["sent"]
		}
		if sent != 1500 {
			t.Errorf("the history has %d sent", sent)
		}
		refuse(t, parts)
		if err := b.conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func refuse(t *testing.T, parts []verdict.Part) {
	t.Helper()
	other := *parts[1].Result
	other.Run++
	later := func(by time.Duration) verdict.Part {
		r := *parts[1].Result
		r.Started = r.Started.Add(by)
		return verdict.Part{Result: &r, Ledger: parts[1].Ledger, Recording: parts[1].Recording}
	}
	gap := parts[0].Ended().Sub(parts[1].Result.Started) + recording.ClockSkew
	tomorrow, justTooLate := later(24*time.Hour), later(gap+time.Second)
	if _, err := verdict.Merge([]verdict.Part{parts[0], later(gap - time.Second)}, verdict.Siblings{}); err != nil {
		t.Errorf("within what the clocks may be apart: %v", err)
	}
	for want, wrong := range map[string][]verdict.Part{
		"two results":                          parts[:1],
		"is there twice":                       {parts[0], parts[0]},
		"has no ledger":                        {parts[0], {Result: parts[1].Result}},
		"not of one test":                      {parts[0], {Result: &other, Ledger: parts[1].Ledger}},
		"no recording of its own":              {parts[0], {Result: parts[1].Result, Ledger: parts[0].Ledger, Recording: parts[1].Recording}},
		"two began after the others had ended": {tomorrow, parts[0]},
		"give each test its own BROKER_RUN":    {parts[0], justTooLate},
	} {
		if _, err := verdict.Merge(wrong, verdict.Siblings{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Of a group that was not there from the start, only what was numbered after it was ready is expected of other processes.
func TestAGroupExpectsOfOtherProcessesWhatCameAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: memory.Subject()})
		one, two := b.process("test"), b.process("test")
		collectors := []*Collector{one.run.NewCollector(), two.run.NewCollector()}
		s := one.sender(100)
		one.produce(s, 300)
		time.Sleep(time.Second)
		collectors[0].Collect()
		time.Sleep(time.Millisecond)
		c := two.consumer(driver.ConsumerConfig{})
		time.Sleep(time.Second)
		collectors[0].Collect() // nothing new: the index is as it was
		one.produce(s, 200)
		two.receive(c, 200)
		time.Sleep(time.Second)
		collectors[0].Collect()
		one.end()
		two.end()
		merged, err := verdict.Merge([]verdict.Part{one.part("one", collectors[0]), two.part("two", collectors[1])}, verdict.Siblings{Processes: 2})
		if err != nil {
			t.Fatal(err)
		}
		a := merged.Topics[0].Groups[0]
		if a.Group != account.Subscribers || a.Subscribers != 1 || a.Expected != 200 || a.Received != 200 || a.Lost != 0 || a.Unexpected != 0 {
			t.Errorf("%+v", a)
		}
		if err := b.conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// member is a consumer whose measurements go by its group, as those of scripts do.
func (s *sibling) member(c driver.ConsumerConfig) *Consumer {
	s.t.Helper()
	consumer := s.consumer(c)
	labels := s.series.Labels
	labels.Group = GroupLabel(s.topic.Address.Driver.Features, c.Group)
	consumer.SetSeries(s.run.Series(labels))
	return consumer
}

func count(h *hist.Histogram) uint64 {
	if h == nil {
		return 0
	}
	return h.Count()
}

// One process sends by a schedule, two do not, and one does not send; all but one of them receive. The latencies of messages without a schedule are
// never put together with the others, whoever sent and whoever received them.
func TestLoopsStayApartInTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		features := memory.Full()
		const transit, stay = time.Millisecond, 2 * time.Second
		b := newBench(t, memory.Config{Features: features, Transit: func(int64) time.Duration { return transit }})
		open, closed, neither, sender := b.sibling("open"), b.sibling("closed"), b.sibling("neither"), b.sibling("sender")
		consumers := map[*sibling]*Consumer{}
		for _, s := range []*sibling{open, closed, neither} {
			consumers[s] = s.member(driver.ConsumerConfig{Group: s.name})
		}
		time.Sleep(2 * time.Second)
		open.send(open.sender(100), 50, time.Second)
		closed.produce(closed.sender(100), 20)
		sender.produce(sender.sender(100), 10)
		time.Sleep(stay)
		for s, c := range consumers {
			s.work(c, 80)
		}
		parts := []verdict.Part{closed.end(), neither.end(), open.end(), sender.end()}
		if r := parts[0].Result.Topics[0]; !r.OpenLoop || !r.ClosedLoop || count(r.Trends["e2e_latency"]) != 50 || count(r.Trends["e2e_latency_closed"]) != 30 ||
			count(r.Trends["publish_latency_closed"]) != 20 || r.Trends["publish_latency"] != nil {
			t.Errorf("alone: %v", r.Trends)
		}
		if r := parts[3].Result.Topics[0]; r.OpenLoop || count(r.Trends["publish_latency"]) != 10 {
			t.Errorf("alone: %v", r.Trends)
		}
		r := together(t, verdict.Siblings{Processes: 4}, parts...)
		topic := r.Topics[0]
		for name, want := range map[string]uint64{
			"publish_latency": 50, "publish_latency_closed": 30, "e2e_latency": 150, "e2e_latency_closed": 90, "delivery_wait": 150, "delivery_wait_closed": 90,
			"schedule_lag": 50, "settle_time": 0, "settle_time_closed": 0, "schedule_lag_closed": 0,
		} {
			got, shown := count(topic.Trends[name]), uint64(0)
			for _, s := range topic.OverTime[name] {
				shown += s.Count
			}
			if got != want || shown != want {
				t.Errorf("%s: %d values, and %d over time; want %d", name, got, shown, want)
			}
		}
		if !topic.OpenLoop || !topic.ClosedLoop || len(topic.Groups) != 3 {
			t.Errorf("open %v, closed %v, %d groups", topic.OpenLoop, topic.ClosedLoop, len(topic.Groups))
		}
		for _, g := range topic.Groups {
			if g.Expected != 80 || g.Received != 80 || count(g.Trends["e2e_latency"]) != 50 || count(g.Trends["e2e_latency_closed"]) != 30 {
				t.Errorf("%s: %+v", g.Group, g)
			}
		}
	})
}

// Three subscribers in two processes, each expecting every message, have one account; what one of them misses is lost whatever others
// received, whether or not all processes are here.
func TestSubscribersOfSeveralProcessesHaveOneAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: memory.Subject()})
		one, two := b.sibling("one"), b.sibling("two")
		all := []*Consumer{one.member(driver.ConsumerConfig{}), one.member(driver.ConsumerConfig{}), two.member(driver.ConsumerConfig{})}
		time.Sleep(2 * time.Second)
		one.produce(one.sender(100), 60)
		two.produce(two.sender(100), 40)
		time.Sleep(2 * time.Second)
		in := NewBuffer(7)
		if n, err := all[2].consumer.Receive(t.Context(), in.Messages); n != 7 || err != nil { // the client has them, and nobody hears of it
			t.Fatal(n, err)
		}
		one.receive(all[0], 100)
		one.receive(all[1], 100)
		two.receive(all[2], 93)
		parts := []verdict.Part{one.end(), two.end()}
		for _, known := range []verdict.Siblings{{Processes: 2}, {}} {
			topic := together(t, known, parts...).Topics[0]
			a := topic.Groups[0]
			if len(topic.Groups) != 1 || a.Group != account.Subscribers || a.Subscribers != 3 || a.Expected != 300 || a.Received != 293 || a.Lost != 7 || a.Uncertain != 0 {
				t.Errorf("%+v", topic.Groups)
			}
			if len(a.Ranges) != 1 || a.Ranges[0].From != 0 || a.Ranges[0].To != 6 {
				t.Errorf("ranges %v", a.Ranges)
			}
			if n := count(a.Trends["e2e_latency"]); n != 293 || count(topic.Trends["e2e_latency"]) != 293 {
				t.Errorf("%d latencies of the group", n)
			}
		}
	})
}
