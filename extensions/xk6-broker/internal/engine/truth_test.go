package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

func sum(h *hist.Histogram) (all float64) { return h.Mean() * float64(h.Count()) }

// A consumer of 200 messages a second that gets 300 a second falls behind: what its user waits is what the theory of one server says,
// though each message was in the client's hands at once. Schedule lag, end-to-end time and delivery wait add up to it, message by
// message, and Little's law holds: the latencies add up to what was outstanding, over time.
func TestASlowConsumerShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, work, length = 300, 5 * time.Millisecond, 8 * time.Second
		const transit = time.Millisecond
		b := newBench(t, memory.Config{Transit: func(int64) time.Duration { return transit }})
		defer b.finish()
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		total := int(rate * length / time.Second)
		loop, err := Consume{Count: uint64(total), Work: work}.Resolve(b.topic.Address.Driver.Features)
		if err != nil {
			t.Fatal(err)
		}
		start := driver.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := loop.Run(t.Context(), []*Consumer{c}); err != nil {
				t.Error(err)
			}
		})
		outstanding := 0.0 // times seconds
		watching := make(chan struct{})
		wg.Go(func() {
			const every = 10 * time.Millisecond
			for range time.Tick(every) {
				select {
				case <-watching:
					return
				default:
					outstanding += float64(c.group.track.Outstanding()) * every.Seconds()
				}
			}
		})
		produce := Produce{Schedule: constant(rate, length), Start: start, Payload: payload.Spec{Size: payload.Fixed(100)}}
		if _, err := produce.Run(t.Context(), []*Sender{b.sender(1 << 16)}); err != nil {
			t.Fatal(err)
		}
		for c.group.track.Outstanding() > 0 {
			time.Sleep(time.Second)
		}
		close(watching)
		wg.Wait()
		want := make([]time.Duration, total)
		free := time.Duration(0)
		arrivals := produce.Schedule()
		for n := range want {
			due, _ := arrivals.At(uint64(n))
			turn := max(due+transit, free)
			want[n], free = turn-due, turn+work
		}
		sameDistribution(t, "end-to-end latency", b.series.Trend(recording.Open, recording.E2ELatency), want)
		e2e, lag, wait := b.series.Trend(recording.Open, recording.E2ELatency), b.series.Trend(recording.Open, recording.ScheduleLag), b.series.Trend(recording.Open, recording.DeliveryWait)
		parts := sum(lag) + sum(b.series.Trend(recording.Open, recording.E2ETime)) + sum(wait)
		if ratio := parts / sum(e2e); ratio < 0.999 || ratio > 1.001 {
			t.Errorf("the parts are %v of the end-to-end latencies", ratio)
		}
		if ratio := outstanding / (sum(e2e) / 1e9); ratio < 0.99 || ratio > 1.01 {
			t.Errorf("Little's law: outstanding %v message seconds, latencies %v", outstanding, sum(e2e)/1e9)
		}
	})
}

// What consumers that have left cannot receive is in no latency and no count of what was received or acked; it is read at the end, and
// said.
func TestTheDrainIsNotTheApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		collector := b.run.NewCollector()
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		s := b.sender(1000)
		b.produce(s, 300)
		in := b.receive(c, 291)
		if err := c.Settle(t.Context(), in, 0, 291, driver.Ack); err != nil {
			t.Fatal(err)
		}
		if err := c.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.produce(s, 400)
		var waited []string
		tell := func(topic, group string, missing uint64) { waited = append(waited, fmt.Sprint(topic, group, missing)) }
		if err := b.run.Finish(t.Context(), Drain{Limit: time.Minute, Tell: tell}); err != nil {
			t.Fatal(err)
		}
		r := collector.Result()
		verdict.Judge(r, verdict.Circumstances{})
		topic := r.Topics[0]
		a := topic.Groups[0]
		if topic.Counts["received"] != 291 || topic.Counts["acked"] != 291 || topic.Trends["e2e_latency"].Count() != 291 {
			t.Errorf("received %d, acked %d, latencies %d", topic.Counts["received"], topic.Counts["acked"], topic.Trends["e2e_latency"].Count())
		}
		if a.Expected != 700 || a.Received != 291 || a.Drained != 409 || a.Lost != 0 || a.Missing != 0 {
			t.Errorf("%+v", a)
		}
		if r.Verdict.Valid || !reasontest.Has(r.Verdict.Invalid(), "drained count=409 share=0.5843") {
			t.Errorf("%+v", r.Verdict)
		}
		if !slices.Equal(waited, []string{"ordersworkers409"}) {
			t.Errorf("waited for %v", waited)
		}
	})
}

// Whoever shows the account once a second goes on while the run ends, and the brokers say what they still have.
func TestTheAccountIsThereWhileTheRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(100), 10)
		in := b.receive(c, 10)
		if err := c.Settle(t.Context(), in, 0, 10, driver.Ack); err != nil {
			t.Fatal(err)
		}
		shown := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for n := range 2000 {
				for _, a := range b.run.Counts() {
					if a.Received != 10 || a.Missing != 0 {
						t.Errorf("%+v", a)
					}
				}
				if n == 0 {
					close(shown)
				}
			}
		})
		<-shown
		b.finish()
		wg.Wait()
	})
}

// The members that stay get what the one that leaves has not settled.
func TestWhoLeavesHoldsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		leaves := b.consumer(driver.ConsumerConfig{Group: "workers"})
		stays := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(100), 100)
		in := NewBuffer(60)
		if n, err := leaves.Receive(t.Context(), in); err != nil || n != 60 { // and nobody is given them
			t.Fatal(n, err)
		}
		if err := leaves.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.receive(stays, 100)
		b.finish()
		if a := b.only(); a.Received != 100 || a.Drained != 0 || a.Lost != 0 || b.series.Count(recording.Received) != 100 {
			t.Errorf("%+v", a)
		}
	})
}

// A subscriber that leaves is given all that was sent to it, though it be more than its prefetch; only where that is full of what the test
// received and never settled, it cannot be known.
func TestASubscriberThatLeavesIsGivenTheRest(t *testing.T) {
	for _, unsettled := range []int{0, 3, 10} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			c := b.consumer(driver.ConsumerConfig{Prefetch: 10})
			b.produce(b.sender(100), 60)
			if unsettled > 0 {
				b.receive(c, unsettled)
			}
			if err := c.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.finish()
			want := account.Account{Lost: 0, Uncertain: 0}
			if unsettled == 10 {
				want.Uncertain = 50
			}
			a := b.only()
			if a.Lost != want.Lost || a.Uncertain != want.Uncertain || a.Drained != uint64(60-unsettled)-want.Uncertain {
				t.Errorf("%d unsettled: %+v", unsettled, a)
			}
		})
	}
}

// A subscriber that comes and goes expects what was sent while it was there, each time; one account has it all, however often.
func TestASubscriberThatComesBackGoesOnExpecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: memory.Subject()})
		s := b.sender(100)
		for round := range 100 {
			c := b.consumer(driver.ConsumerConfig{})
			b.produce(s, 10)
			take := 10
			if round == 50 {
				take = 9
			}
			b.receive(c, take)
			if err := c.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.produce(s, 1) // nobody is there
		}
		b.finish()
		if a := b.only(); a.Subscribers != 1 || a.Expected != 1000 || a.Received != 999 || a.Drained != 1 || a.Missing != 0 || a.Unexpected != 0 {
			t.Errorf("%+v", a)
		}
		if n := len(b.topic.track.Groups()); n != 1 {
			t.Errorf("%d accounts are kept", n)
		}
	})
}

func TestMessagesWithoutStampAreNotAccountedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		collector := b.run.NewCollector()
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		pub, err := b.run.NewPublisher(t.Context(), b.conn, b.topic, driver.ProducerConfig{Topic: "orders", Window: 100})
		if err != nil {
			t.Fatal(err)
		}
		began := driver.Now()
		b.produce(pub.NewSender(StampOff, b.series), 20)
		b.receive(c, 20)
		b.finish()
		if waited := driver.Now() - began; waited > int64(time.Second) {
			t.Errorf("the end waited %v", time.Duration(waited))
		}
		r := collector.Result()
		verdict.Judge(r, verdict.Circumstances{})
		if a := r.Topics[0].Groups[0]; a.Expected != 0 || a.Lost != 0 || r.Topics[0].Counts["unaccounted"] != 20 || r.Topics[0].Counts["unstamped"] != 20 {
			t.Errorf("%+v %v", a, r.Topics[0].Counts)
		}
		if !reasontest.Has(r.Verdict.Notes(), "not-stamped count=20") {
			t.Errorf("%+v", r.Verdict)
		}
	})
}

// Two tests that were given one name, one after the other: what the first left is not in the second's numbers.
func TestAnEarlierTestOfTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		yesterday := b.process("nightly")
		yesterday.produce(yesterday.sender(100), 50)
		yesterday.end()
		time.Sleep(10 * time.Second)
		today := b.process("nightly")
		collector := today.run.NewCollector()
		c := today.consumer(driver.ConsumerConfig{Group: "workers", Start: driver.StartEarliest})
		today.produce(today.sender(100), 50)
		today.receive(c, 100)
		today.end()
		r := collector.Result()
		verdict.Judge(r, verdict.Circumstances{})
		topic := r.Topics[0]
		if h := topic.Trends["e2e_latency"]; h.Count() != 50 || h.Max() > int64(time.Second) {
			t.Errorf("%d latencies, max %v", h.Count(), time.Duration(h.Max()))
		}
		if topic.Counts["earlier"] != 50 || r.Verdict.Valid || r.Verdict.Latencies {
			t.Errorf("%v %+v", topic.Counts, r.Verdict)
		}
	})
}

// Two tests of one name, one at once after the other: of a test of one process, nothing that another process sent is a sibling's, and a test of
// more has no more of them than it has processes.
func TestATestOfTheSameNameJustBefore(t *testing.T) {
	for _, c := range []struct {
		processes, before int
		counter           recording.Counter
		says              string
		valid             bool
	}{
		{1, 1, recording.Earlier, "earlier-test why=early count=40", false},
		{2, 1, recording.Sibling, "", true},
		{2, 2, recording.Sibling, "earlier-test why=processes count=2 processes=2", false},
		{3, 2, recording.Sibling, "", true},
		{0, 2, recording.Sibling, "", true},
	} {
		t.Run(fmt.Sprint(c.processes, "of", c.before), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, memory.Config{})
				for range c.before {
					before := b.process("nightly")
					before.produce(before.sender(100), 40)
					before.end()
				}
				b.run = NewRun("nightly", c.processes)
				b.run.sleep = machine.Timer
				b.topic = b.run.Topic(b.topic.Address, "orders")
				b.series = b.run.Series(b.series.Labels)
				collector := b.run.NewCollector()
				workers := b.consumer(driver.ConsumerConfig{Group: "workers", Start: driver.StartEarliest})
				b.produce(b.sender(100), 40)
				b.receive(workers, 40*(c.before+1))
				b.finish()
				r := collector.Result()
				verdict.Judge(r, verdict.Circumstances{})
				topic := r.Topics[0]
				if topic.Counts[c.counter.String()] != int64(40*c.before) || r.Verdict.Valid != c.valid || r.Verdict.Latencies != c.valid {
					t.Errorf("%v %+v", topic.Counts, r.Verdict)
				}
				if c.says != "" && !reasontest.Has(r.Verdict.Invalid(), c.says) {
					t.Errorf("no %q in %q", c.says, reasontest.Codes(r.Verdict.Reasons))
				}
				if n := count(topic.Trends["e2e_latency"]) + count(topic.Trends["e2e_latency_closed"]); c.processes == 1 && n != 40 {
					t.Errorf("%d latencies", n)
				}
			})
		})
	}
}

// Messages that a group holds and has not settled are in the broker's backlog and are not missing: messages that vanished beside them are lost. If the group
// holds messages of another test too, as many are uncertain.
func TestAHeldMessageHidesNoLoss(t *testing.T) {
	for strangers, want := range map[int]account.Account{0: {Lost: 300, Undelivered: 1200}, 200: {Undelivered: 1000, Uncertain: 500}} {
		t.Run(fmt.Sprint(strangers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, memory.Config{})
				if strangers > 0 {
					other := b.process("another test")
					other.produce(other.sender(1000), uint64(strangers))
					other.end()
				}
				thief, err := b.conn.NewConsumer(t.Context(), driver.ConsumerConfig{
					Topic: "orders", Group: "workers", Prefetch: 300, Start: driver.StartEarliest,
				})
				if err != nil {
					t.Fatal(err)
				}
				c := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 1000, Start: driver.StartEarliest})
				b.produce(b.sender(1000), 2000)
				b.receive(c, 500+strangers) // and they are not settled
				stolen := make(driver.Batch, 300)
				if n, err := thief.Receive(t.Context(), stolen); err != nil || n != 300 {
					t.Fatal(n, err)
				}
				if err := thief.Settle(t.Context(), stolen, driver.Ack); err != nil {
					t.Fatal(err)
				}
				b.finish()
				if a := b.only(); a.Missing != 1500 || a.Lost != want.Lost || a.Undelivered != want.Undelivered || a.Uncertain != want.Uncertain {
					t.Errorf("%+v", a)
				}
			})
		})
	}
}

// A dead letter is this test's own, and so is what comes by another address of the same broker; the account of that is not kept.
func TestMessagesOfThisTestFromElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		collector := b.run.NewCollector()
		alias, err := driver.ParseURL(strings.Replace(b.topic.Address.String(), "127.0.0.1", "localhost", 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, at := range map[string]*Topic{"routed": b.run.Topic(b.topic.Address, "dead"), "aliased": b.run.Topic(alias, "orders")} {
			series := b.run.Series(Labels{Broker: at.Address.String(), Driver: b.topic.Address.Driver.Name, Topic: at.Name})
			c, err := b.run.NewConsumer(t.Context(), b.conn, at,
				driver.ConsumerConfig{Topic: "orders", Group: name, Prefetch: 100, Start: driver.StartNew}, series)
			if err != nil {
				t.Fatal(err)
			}
			b.produce(b.sender(100), 10)
			b.receive(c, 10)
			if got := series.Count(map[string]recording.Counter{"routed": recording.Routed, "aliased": recording.Aliased}[name]); got != 10 || series.Count(recording.Foreign) != 0 {
				t.Errorf("%s: %d", name, got)
			}
			if n := series.Trend(recording.Closed, recording.E2ELatency).Count(); n != 10 {
				t.Errorf("%s: %d latencies", name, n)
			}
		}
		b.finish()
		r := collector.Result()
		verdict.Judge(r, verdict.Circumstances{})
		if r.Verdict.Account || !r.Verdict.Latencies {
			t.Errorf("%+v", r.Verdict)
		}
		dead := func(t *result.Topic, _ *result.Group) bool { return t.Topic == "dead" }
		if d := verdict.Account(r, limit(t, "count==0"), "duplicated", dead, 1); d.Judged || !strings.Contains(d.Why, "nothing was received") {
			t.Errorf("%+v", d)
		}
	})
}

// Messages of a schedule and of a closed loop on one topic have rows of their own, on both sides.
func TestTheTwoLoopsAreNotPutTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Transit: func(int64) time.Duration { return time.Millisecond }})
		collector := b.run.NewCollector()
		c := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 10_000})
		s := b.sender(100)
		b.produce(s, 1000)
		if _, err := (Produce{Schedule: constant(10, time.Second), Payload: payload.Spec{Size: payload.Fixed(64)}}).Run(t.Context(), []*Sender{s}); err != nil {
			t.Fatal(err)
		}
		b.receive(c, 1010)
		collector.Collect()
		b.finish()
		r := collector.Result()
		topic := r.Topics[0]
		for name, want := range map[string]uint64{
			"publish_latency": 10, "publish_latency_closed": 1000, "e2e_latency": 10, "e2e_latency_closed": 1000, "schedule_lag": 10,
		} {
			if h := topic.Trends[name]; h == nil || h.Count() != want {
				t.Errorf("%s: %v", name, h)
			}
		}
		if p := topic.OverTime; p["publish_latency"][0].Count != 10 || p["publish_latency_closed"][0].Count != 1000 {
			t.Errorf("%v", p)
		}
		if !topic.OpenLoop || !topic.ClosedLoop {
			t.Error("it does not say that there were both")
		}
	})
}

// Each group has its own latencies; together they are the topic's.
func TestEachGroupHasItsOwnLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		collector := b.run.NewCollector()
		consumers := map[string]*Consumer{}
		for _, group := range []string{"audit", "orders"} {
			labels := b.series.Labels
			labels.Group = group
			c, err := b.run.NewConsumer(t.Context(), b.conn, b.topic,
				driver.ConsumerConfig{Topic: "orders", Group: group, Prefetch: 100, Start: driver.StartNew}, b.run.Series(labels))
			if err != nil {
				t.Fatal(err)
			}
			consumers[group] = c
		}
		b.produce(b.sender(100), 50)
		b.receive(consumers["orders"], 50)
		time.Sleep(time.Second)
		b.receive(consumers["audit"], 50)
		b.finish()
		r := collector.Result()
		verdict.Describe(r)
		topic := r.Topics[0]
		if topic.Trends["e2e_latency"].Count() != 100 || len(topic.Groups) != 2 {
			t.Fatalf("%+v", topic.Groups)
		}
		for _, g := range topic.Groups {
			h := g.Trends["e2e_latency"]
			if slow := h.Min() >= int64(time.Second); h.Count() != 50 || slow != (g.Group == "audit") {
				t.Errorf("%s: %d from %v", g.Group, h.Count(), time.Duration(h.Min()))
			}
			if len(g.Percentiles["e2e_latency"]) == 0 {
				t.Errorf("%s: its percentiles are not spelt out", g.Group)
			}
		}
	})
}

// A topic that the test deletes or empties itself has lost nothing.
func TestWhatTheTestRemovesIsNotLost(t *testing.T) {
	for _, present := range []bool{false, true} {
		t.Run(fmt.Sprint(present), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, memory.Config{})
				collector := b.run.NewCollector()
				c := b.consumer(driver.ConsumerConfig{Group: "workers"})
				b.produce(b.sender(1000), 200)
				in := b.receive(c, 50)
				if err := c.Settle(t.Context(), in, 0, 50, driver.Ack); err != nil {
					t.Fatal(err)
				}
				if !present {
					if err := c.Leave(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				admin, _ := b.conn.(driver.Admin)
				err := b.run.Remove(t.Context(), b.topic, Drain{Limit: time.Second}, false, func() error { return admin.DeleteTopic(t.Context(), "orders") })
				if err != nil {
					t.Fatal(err)
				}
				b.finish()
				a := b.only()
				if a.Lost != 0 || a.Received != 50 || a.Drained+a.Why[account.Removed] != 150 || (a.Drained == 150) == present {
					t.Errorf("%+v", a)
				}
				// Whichever became of them, the slowest of all are in no latency.
				r := collector.Result()
				verdict.Judge(r, verdict.Circumstances{})
				want := map[bool]string{false: "drained count=150 share=0.75", true: "uncertain why=removed count=150"}[present]
				if v := r.Verdict; v.Valid || v.Account == present || !reasontest.Has(v.Invalid(), want) {
					t.Errorf("%+v, want %q", v, want)
				}
				if p50 := r.Topics[0].Percentiles[recording.E2ELatency.String()][0]; !p50.Supported || p50.Believed {
					t.Errorf("%+v", p50)
				}
			})
		})
	}
}

// A test of one process knows what was lost: there is nobody else who could have received it.
func TestOneProcessWithANameKnowsWhatIsLost(t *testing.T) {
	for processes, want := range map[int]fates{1: {expected: 20, received: 13, lost: 7}, 2: {expected: 20, received: 13, uncertain: 7, why: "missing-process"}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			b.run = NewRun("nightly", processes)
			b.run.sleep = machine.Timer
			b.topic = b.run.Topic(b.topic.Address, "orders")
			b.series = b.run.Series(b.series.Labels)
			collector := b.run.NewCollector()
			c := b.consumer(driver.ConsumerConfig{Group: "workers"})
			b.produce(b.sender(100), 13)
			if err := c.Settle(t.Context(), b.receive(c, 13), 0, 13, driver.Ack); err != nil {
				t.Fatal(err)
			}
			b.produce(b.sender(100), 7)
			if err := c.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.steal(7)
			b.finish()
			if got := (told{collector.Result()}).fates(t); got != want {
				t.Errorf("of %d: %+v, want %+v", processes, got, want)
			}
		})
	}
}
