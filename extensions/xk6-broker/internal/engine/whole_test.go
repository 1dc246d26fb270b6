package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// sibling is a process of a test that notes each second how far its producers have come, as k6 makes it do.
type sibling struct {
	*bench
	name      string
	collector *Collector
	halt      chan struct{}
}

func (b *bench) sibling(name string) *sibling {
	p := b.process("test")
	s := &sibling{p, name, p.run.NewCollector(), make(chan struct{})}
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.collector.Collect()
			case <-s.halt:
				return
			}
		}
	}()
	return s
}

// end ends the process, and gives what it leaves behind.
func (s *sibling) end() verdict.Part {
	s.t.Helper()
	s.bench.end()
	close(s.halt)
	return s.part(s.name, s.collector)
}

// send sends so many a second, for some seconds.
func (s *sibling) send(sender *Sender, rate int64, d time.Duration) {
	s.t.Helper()
	if _, err := (Produce{Schedule: constant(rate, d), Payload: payload.Spec{Size: payload.Fixed(64)}}).Run(s.t.Context(), []*Sender{sender}); err != nil {
		s.t.Error(err)
	}
}

// work receives and acknowledges n messages.
func (s *sibling) work(c *Consumer, n int) {
	s.t.Helper()
	for n > 0 {
		batch := min(n, 20)
		if err := c.Settle(s.t.Context(), s.receive(c, batch), 0, batch, driver.Ack); err != nil {
			s.t.Fatal(err)
		}
		n -= batch
	}
}

// steal takes messages from under the test, which so loses them.
func (b *bench) steal(n int) {
	b.t.Helper()
	b.stealFrom("workers", n)
}

func (b *bench) stealFrom(group string, n int) {
	b.t.Helper()
	thief, err := b.conn.NewConsumer(b.t.Context(), driver.ConsumerConfig{Topic: "orders", Group: group, Prefetch: n, Start: driver.StartEarliest})
	if err != nil {
		b.t.Fatal(err)
	}
	for got := 0; got < n; {
		batch := make(driver.Batch, n-got)
		more, err := thief.Receive(b.t.Context(), batch)
		if err != nil {
			b.t.Fatal(err)
		}
		if err := thief.Settle(b.t.Context(), batch[:more], driver.Ack); err != nil {
			b.t.Fatal(err)
		}
		got += more
	}
	if err := thief.Close(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// told is a result, and what is asked of it.
type told struct{ *result.Result }

func together(t *testing.T, known verdict.Siblings, parts ...verdict.Part) told {
	t.Helper()
	r, err := verdict.Merge(parts, known)
	if err != nil {
		t.Fatal(err)
	}
	return told{r}
}

// fates are what became of the messages of the only group of a result.
type fates struct {
	expected, received, lost, undelivered, uncertain uint64

	why string // of those that are uncertain
}

func (r told) fates(t *testing.T) fates {
	t.Helper()
	var all []result.Group
	for _, topic := range r.Topics {
		all = append(all, topic.Groups...)
	}
	if len(all) != 1 {
		t.Fatalf("%d groups: %+v", len(all), all)
	}
	a := all[0].Account
	return fates{a.Expected, a.Received, a.Lost, a.Undelivered, a.Uncertain, strings.Trim(fmt.Sprint(slices.Sorted(maps.Keys(a.Why))), "[]")}
}

// says reports whether there are reasons as the words say, which are those of [reasontest.Has]; "" is none of them.
func (r told) says(words ...string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return w != "" && !reasontest.Has(r.Verdict.Invalid(), w) })
}

func (r told) notes(words string) bool {
	return words == "" || reasontest.Has(r.Verdict.Notes(), words)
}

// A producer and two consumers, of three processes. What the one received that is not there is not lost, and the verdict says that it is
// missing, as far as anything shows it.
func TestWhatAMissingProcessReceivedIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		producer, first, second := b.sibling("producer"), b.sibling("first"), b.sibling("second")
		one := first.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 100})
		two := second.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 100})
		time.Sleep(2 * time.Second)
		sender := producer.sender(100)
		producer.send(sender, 100, time.Second)
		first.work(one, 60)
		second.work(two, 40)
		producer.send(sender, 10, 500*time.Millisecond)
		b.steal(5)
		time.Sleep(time.Second)
		p := producer.end()
		time.Sleep(time.Second)
		a := first.end()
		time.Sleep(time.Second)
		c := second.end()
		here := []verdict.Part{a, p}

		r := together(t, verdict.Siblings{}, here...) // a consumer that is missing leaves no trace
		if got, want := r.fates(t), (fates{expected: 105, received: 60, uncertain: 45, why: "missing-process"}); got != want {
			t.Errorf("of an unknown number: %+v, want %+v", got, want)
		}
		if r.Verdict.Account || !r.notes("process-missing why=unknown count=2") || !r.says("uncertain why=missing-process count=45") {
			t.Errorf("of an unknown number: %+v", r.Verdict)
		}
		r = together(t, verdict.Siblings{Processes: 3}, here...)
		if got, want := r.fates(t), (fates{expected: 105, received: 60, uncertain: 45, why: "missing-process"}); got != want {
			t.Errorf("two of three: %+v, want %+v", got, want)
		}
		if r.Verdict.Account || r.Verdict.Latencies || !r.says("process-missing why=absent count=1 processes=3") {
			t.Errorf("two of three: %+v", r.Verdict)
		}
		r = together(t, verdict.Siblings{Processes: 2}, a, c) // that is not true, and the producer's messages tell
		if got := r.fates(t); got != (fates{}) {
			t.Errorf("without the producer: %+v", got)
		}
		if n := r.Topics[0].Counts[recording.Sibling.String()]; n != 100 || r.Verdict.Account ||
			!r.says(fmt.Sprintf("process-missing why=unmerged count=100 name=instance_%d", p.Result.Instance)) {
			t.Errorf("without the producer: %d of a sibling, %+v", n, r.Verdict)
		}
		r = together(t, verdict.Siblings{Processes: 3}, a, p, c)
		if got, want := r.fates(t), (fates{expected: 105, received: 100, lost: 5}); got != want || !r.Verdict.Valid || r.Processes != 3 {
			t.Errorf("all: %+v, want %+v; %+v", got, want, r.Verdict)
		}
		for i := range here { // as BROKER_PROCESSES has it
			here[i].Result.Processes = 3
		}
		if r = together(t, verdict.Siblings{}, here...); !r.says("process-missing why=absent count=1 processes=3") {
			t.Errorf("two of three, as they say: %+v", r.Verdict)
		}
		if r = together(t, verdict.Siblings{}, a, p, c); !r.Verdict.Valid || r.fates(t).lost != 5 {
			t.Errorf("all, as they say: %+v", r.Verdict)
		}
		fails := func(known verdict.Siblings, want string) {
			t.Helper()
			if _, err := verdict.Merge([]verdict.Part{a, p, c}, known); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
		fails(verdict.Siblings{Processes: 2}, "there are 3 results")
		c.Result.Processes = 2
		fails(verdict.Siblings{}, "the same BROKER_PROCESSES")
	})
}

// The consumers' process ends two seconds before the producers'. What it said of the backlog was before that: what was sent since is
// not lost for not being in it. The broker itself can say when all is over.
func TestABacklogSpeaksOfWhatWasSentBeforeIt(t *testing.T) {
	{
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			consumer, producer := b.sibling("consumer"), b.sibling("producer")
			c := consumer.consumer(driver.ConsumerConfig{Group: "workers"})
			time.Sleep(2 * time.Second)
			sender := producer.sender(100)
			producer.send(sender, 1000, 4*time.Second)
			b.steal(10)
			consumer.work(c, 3500)
			producer.send(sender, 1000, 1500*time.Millisecond)
			consumer.work(c, 300)
			early := consumer.end() // 1690 are at the broker
			producer.send(sender, 1000, 2500*time.Millisecond)
			producer.bench.end() // and 4190 now
			late := producer.end()
			r := together(t, verdict.Siblings{Processes: 2}, early, late)
			want := fates{expected: 8000, received: 3800, uncertain: 4200, why: "no-backlog"}
			if got := r.fates(t); got != want || !r.says("uncertain why=no-backlog") {
				t.Errorf("%+v, want %+v; %v", got, want, reasontest.Codes(r.Verdict.Reasons))
			}
		})
	}
}

// What comes for a group whose messages are kept is expected also when its members have gone, were they there for an instant only.
func TestAGroupExpectsWhatIsKeptForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		producer, visitor := b.sibling("producer"), b.sibling("visitor")
		sender := producer.sender(100)
		producer.send(sender, 100, 2300*time.Millisecond)
		time.Sleep(2 * time.Second)
		visitor.consumer(driver.ConsumerConfig{Group: "workers"})
		early := visitor.end()
		time.Sleep(2 * time.Second)
		producer.send(sender, 100, 3*time.Second)
		late := producer.end()
		r := together(t, verdict.Siblings{Processes: 2}, early, late)
		if got, want := r.fates(t), (fates{expected: 300, uncertain: 300, why: "no-backlog"}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// A backlog counts messages that were received and not settled, whichever process holds them. Messages that were there before the test and are held as
// well make it doubtful: as many are uncertain.
func TestWhatIsHeldHidesNoLossFromTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		earlier := b.process("yesterday")
		earlier.consumer(driver.ConsumerConfig{Group: "workers"})
		earlier.produce(earlier.sender(100), 20)
		earlier.end()
		one, two := b.sibling("one"), b.sibling("two")
		first := one.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 320})
		one.receive(first, 20) // yesterday's
		time.Sleep(2 * time.Second)
		two.produce(two.sender(100), 1000)
		one.receive(first, 300)
		b.steal(100)
		second := two.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 200})
		two.receive(second, 200)
		time.Sleep(time.Second)
		early := one.end()
		time.Sleep(time.Second)
		parts := []verdict.Part{early, two.end()}
		r := together(t, verdict.Siblings{Processes: 2}, parts...)
		if got, want := r.fates(t), (fates{expected: 1000, received: 500, undelivered: 380, uncertain: 120, why: "no-backlog"}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// Two processes that name one broker differently mean one topic. Where one process uses both names they are told apart, and what crosses
// from the one to the other is said to have no account.
func TestABrokerOfTwoNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		name := b.topic.Address.Driver.Name
		at := func(s *sibling, url string) *bench {
			t.Helper()
			address, err := driver.ParseURL(url, nil)
			if err != nil {
				t.Fatal(err)
			}
			other := *s.bench
			other.topic = s.run.Topic(address, "orders")
			other.series = s.run.Series(Labels{Broker: address.String(), Driver: address.Driver.Name, Topic: "orders"})
			return &other
		}
		one, two := b.sibling("one"), b.sibling("two")
		there := at(two, name+"://localhost:7")
		c := there.consumer(driver.ConsumerConfig{Group: "workers"})
		time.Sleep(2 * time.Second)
		one.produce(one.sender(100), 100)
		b.steal(3)
		two.work(c, 97)
		time.Sleep(time.Second)
		parts := []verdict.Part{one.end(), two.end()}
		r := together(t, verdict.Siblings{Processes: 2}, parts...)
		if got, want := r.fates(t), (fates{expected: 100, received: 97, lost: 3}); got != want || len(r.Topics) != 1 || !r.Verdict.Valid {
			t.Errorf("one topic: %+v, want %+v; %+v", got, want, r.Verdict)
		}

		b = newBench(t, memory.Config{})
		core := b.broker.Driver() // another way to the same topic
		core.Name += "core"
		core.Schemes = []string{core.Name}
		driver.Register(core)
		for title, other := range map[string]string{
			"another host": b.topic.Address.Driver.Name + "://localhost:7", "another driver": core.Name + "://127.0.0.1:7",
		} {
			one, two := b.sibling("one"), b.sibling("two")
			there, here := at(two, other), two.consumer(driver.ConsumerConfig{Group: "workers"})
			c := there.consumer(driver.ConsumerConfig{Group: "workers"})
			one.produce(one.sender(100), 100)
			two.produce(two.sender(100), 40) // which the process counts as crossing by itself
			in := there.receive(c, 140)
			if err := c.Settle(t.Context(), in, 0, 140, driver.Ack); err != nil {
				t.Fatal(err)
			}
			if err := here.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			r = together(t, verdict.Siblings{Processes: 2}, one.end(), two.end())
			var lost, routed uint64
			var aliased, siblings int64
			for _, topic := range r.Topics {
				aliased += topic.Counts[recording.Aliased.String()]
				siblings += topic.Counts[recording.Sibling.String()]
				for _, g := range topic.Groups {
					lost, routed = lost+g.Lost, routed+g.Routed
				}
			}
			if len(r.Topics) != 2 || aliased != 140 || siblings != 0 || lost != 0 || routed != 140 || r.Verdict.Account || !r.says("uncertain why=aliased") {
				t.Errorf("%s: %d topics, aliased %d, of siblings %d, lost %d, routed %d; %+v", title, len(r.Topics), aliased, siblings, lost, routed, r.Verdict)
			}
		}
	})
}

// A consumer that every script has, and that receives nothing in one process, may receive in another. In none it does speak against the whole.
func TestAConsumerThatReceivesNothingInAnyProcess(t *testing.T) {
	for _, received := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			one, two := b.sibling("one"), b.sibling("two")
			for _, p := range []*sibling{one, two} {
				p.topic.Declare()
				p.produce(p.sender(100), 50)
			}
			if received {
				two.work(two.consumer(driver.ConsumerConfig{Group: "workers", Start: driver.StartEarliest}), 100)
			}
			parts := []verdict.Part{one.end(), two.end()}
			if r := parts[0].Result; !r.Verdict.Account || reasontest.Has(r.Verdict.Reasons, "nothing-received") {
				t.Errorf("alone: %+v", r.Verdict)
			}
			r := together(t, verdict.Siblings{Processes: 2}, parts...)
			if says := r.says("nothing-received"); says == received || r.Verdict.Account != received || !r.Topics[0].Declared {
				t.Errorf("received %v: %+v", received, r.Verdict)
			}
		})
	}
}

// What one process could not say of the others' doings it says no more when they are there: that there was a backlog when it ended, which
// another then received.
func TestTheWholeTakesBackWhatAProcessCouldNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		one, two := b.sibling("one"), b.sibling("two")
		one.consumer(driver.ConsumerConfig{Group: "workers"})
		c := two.consumer(driver.ConsumerConfig{Group: "workers"})
		one.produce(one.sender(100), 100)
		early := one.end()
		if !(told{early.Result}).says("undelivered count=100 share=1") {
			t.Errorf("alone: %+v", early.Result.Verdict)
		}
		two.work(c, 100)
		if r := together(t, verdict.Siblings{Processes: 2}, early, two.end()); !r.Verdict.Valid || r.fates(t) != (fates{expected: 100, received: 100}) {
			t.Errorf("%+v, %+v", r.fates(t), r.Verdict)
		}
	})
}

// A member of a group that others go on with waits for nothing: they read what is left.
func TestAProcessDoesNotWaitForWhatOthersReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		one, two := b.sibling("one"), b.sibling("two")
		c := two.consumer(driver.ConsumerConfig{Group: "workers"})
		one.consumer(driver.ConsumerConfig{Group: "workers"})
		one.produce(one.sender(100), 100)
		two.work(c, 40)
		before := driver.Now()
		early := one.end()
		if took := time.Duration(driver.Now() - before); took != 0 {
			t.Errorf("it took %v to end", took)
		}
		if a := early.Result.Topics[0].Groups[0]; a.Drained != 0 || a.Missing != 100 {
			t.Errorf("%+v", a)
		}
		two.work(c, 60)
		two.end()
	})
}

// A subscriber that comes and goes expects of other processes what they send while it is there.
func TestASubscriberIsSentNothingWhileItIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: memory.Subject()})
		sender, listener := b.sibling("sender"), b.sibling("listener")
		s := sender.sender(100)
		for range 3 {
			c := listener.consumer(driver.ConsumerConfig{})
			time.Sleep(2 * time.Second)
			sender.produce(s, 100)
			listener.receive(c, 90)
			time.Sleep(2 * time.Second)
			if err := c.Leave(t.Context()); err != nil { // and it drains 10
				t.Fatal(err)
			}
			sender.produce(s, 1000)
			time.Sleep(2 * time.Second)
		}
		r := together(t, verdict.Siblings{Processes: 2}, sender.end(), listener.end())
		if a := r.Topics[0].Groups[0]; a.Expected != 300 || a.Received != 270 || a.Drained != 30 || a.Lost != 0 {
			t.Errorf("%+v", a)
		}
	})
}
