package account_test

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

func TestVerdicts(t *testing.T) {
	topic := account.NewTopic()
	group := topic.Group("workers", true)
	p := topic.Producer(7)
	for range 10 {
		p.Expect(p.Next())
	}
	a, b := group.Reader(), group.Reader()
	for _, step := range []struct {
		what      string
		reader    *account.Reader
		id, seq   uint64
		partition int32
		attempt   int32
		settle    bool
		want      account.Reception
	}{
		{"the first", a, 7, 0, 0, 1, true, account.First},
		{"a later one", a, 7, 3, 0, 1, false, account.First},
		{"one that was overtaken", a, 7, 2, 0, 1, true, account.First | account.Reordered},
		{"one in another partition", a, 7, 1, 1, 1, true, account.First},
		{"one in a partition that is no index", a, 7, 5, -1, 1, true, account.First},
		{"one overtaken there", a, 7, 4, -1, 0, true, account.First | account.Reordered},
		{"a copy of one that is not settled", b, 7, 3, 0, 0, true, account.Redelivered},
		{"a copy of one that is", b, 7, 3, 0, 0, true, account.Duplicated},
		{"the broker repeats one that is settled", a, 7, 0, 0, 2, true, account.Duplicated | account.Redelivered},
		{"one that a dead consumer had", b, 7, 6, 0, 2, true, account.First | account.Redelivered},
		{"a redelivery overtakes nothing", b, 7, 1, 0, 2, true, account.Duplicated | account.Redelivered},
		{"nor is it a measure of what comes first", b, 7, 7, 0, 1, false, account.First},
		{"a producer of another topic", b, 8, 0, 0, 1, true, account.First | account.Foreign},
		{"a number that was not handed out", b, 7, 10, 0, 1, true, account.Foreign},
	} {
		if got := step.reader.Received(step.id, step.seq, step.partition, step.attempt); got != step.want {
			t.Errorf("%s: got %v, want %v", step.what, got, step.want)
		}
		if step.settle {
			step.reader.Settled(step.id, step.seq)
		}
	}
	want := account.Tally{Expected: 10, Received: 8, Missing: 2, Settled: 7, Duplicated: 3, Redelivered: 4, Reordered: 2, Foreign: 2}
	if got := group.Tally(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestWhatAGroupExpects(t *testing.T) {
	topic := account.NewTopic()
	early := topic.Producer(1)
	groups := []*account.Group{
		topic.Group("new", false),
		topic.Group("earliest", true),
		topic.Group("ready late", false),
		topic.Group("leaves", true),
	}
	for _, stage := range []struct {
		what string
		do   func()
		want [4]uint64 // what each group expects after it
	}{
		{"three messages", func() { expect(early, 3) }, [4]uint64{0, 3, 0, 3}},
		{"ready", groups[0].Ready, [4]uint64{0, 3, 0, 3}},
		{"four more", func() { expect(early, 4) }, [4]uint64{4, 7, 0, 7}},
		{"ready again", groups[0].Ready, [4]uint64{4, 7, 0, 7}},
		{"a new producer", func() { expect(topic.Producer(2), 5) }, [4]uint64{9, 12, 0, 12}},
		{"one leaves", groups[3].Close, [4]uint64{9, 12, 0, 12}},
		{"two more", func() { expect(early, 2) }, [4]uint64{11, 14, 0, 12}},
		{"another producer", func() { expect(topic.Producer(3), 1) }, [4]uint64{12, 15, 0, 12}},
		{"late readiness", groups[2].Ready, [4]uint64{12, 15, 0, 12}},
		{"one more", func() { expect(early, 1) }, [4]uint64{13, 16, 1, 12}},
		{"readiness after leaving", groups[3].Ready, [4]uint64{13, 16, 1, 12}},
	} {
		stage.do()
		for i, g := range groups {
			if got := g.Tally(); got != (account.Tally{Expected: stage.want[i], Missing: stage.want[i]}) {
				t.Errorf("after %s, group %d: %+v, want %d expected", stage.what, i, got, stage.want[i])
			}
		}
	}
}

// expect numbers n messages and expects them.
func expect(p *account.Producer, n int) {
	for range n {
		p.Expect(p.Next())
	}
}

func TestExpectOfWhatWasNotNumberedPanics(t *testing.T) {
	p := account.NewTopic().Producer(1)
	p.Next()
	p.Expect(0)
	p.ExpectN(0, 1)
	for name, expect := range map[string]func(){"one": func() { p.Expect(1) }, "some": func() { p.ExpectN(0, 2) }} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("a message that was never numbered is expected")
				}
			}()
			expect()
		})
	}
}

// What was removed from a topic is expected by no group that comes later, and what is numbered afterwards is, of every producer.
func TestAGroupThatComesAfterARemovalExpectsTheRest(t *testing.T) {
	topic := account.NewTopic()
	old, late := topic.Producer(1), topic.Producer(2)
	const before = 1<<13 + 70 // a page and a bit
	old.ExpectN(old.NextN(before), before)
	topic.Remove(0)
	old.ExpectN(old.NextN(10), 10)
	late.ExpectN(late.NextN(5), 5)
	g := topic.Group("workers", true)
	r := g.Reader()
	if v := r.Received(1, before-1, 0, 1); v != account.First { // it was on its way
		t.Errorf("what came all the same is %v", v)
	}
	if a := g.Tally(); a.Expected != 15 || a.Missing != 15 || a.Received != 1 || a.Unexpected != 1 {
		t.Errorf("%+v", a)
	}
}
