package account_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// recoded sends the sets of a snapshot through their encoding, as from one machine to another.
func recoded(t *testing.T, l account.Snapshot) account.Snapshot {
	t.Helper()
	recode := func(sets ...*account.Numbers) {
		for _, n := range sets {
			var b bytes.Buffer
			if _, err := (*n).(account.Set).WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			got, err := account.ReadSet(b.Bytes())
			if err != nil || !got.Equal((*n).(account.Set)) {
				t.Fatalf("%d numbers became %d: %v", (*n).Len(), got.Len(), err)
			}
			*n = got
		}
	}
	for i := range l.Producers {
		recode(&l.Producers[i].Expected)
	}
	for _, g := range l.Groups {
		for i := range g.Sources {
			s := &g.Sources[i]
			recode(&s.Received, &s.Settled, &s.Again, &s.Drained, &s.Doubted)
		}
	}
	return l
}

// merged is for sets that are in memory, which load without an error.
func merged(t *testing.T, producers []account.ProducerSnapshot, shares []account.GroupSnapshot, terms func(id uint64) account.Terms, limit int) account.Whole {
	t.Helper()
	w, err := account.Merge(producers, shares, terms, limit)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Three processes produce and share one group; what they know together is what a single one that saw everything would have counted.
func TestLedgersOfSeveralProcessesGiveTheWholeAccount(t *testing.T) {
	const processes, producers, messages = 3, 2, 20_000 // several pages, complete ones among them
	seeds := uint64(8)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 5)) // the same numbers each time is what it is for
		topics, readers := make([]*account.Topic, processes), make([]*account.Reader, processes)
		for i := range topics {
			topics[i] = account.NewTopic()
			topics[i].Share()
			readers[i] = topics[i].Group("g", account.Earliest).Reader()
		}
		var want account.Tally
		received, settled := map[message][processes]bool{}, map[message][processes]bool{}
		for home := range processes {
			for k := range producers {
				id := uint64(home)<<32 | uint64(k)
				p := topics[home].Producer(id)
				for range messages {
					m := message{id, p.Next()}
					expected := random.IntN(1000) > 0
					if expected {
						p.Expect(m.seq)
						want.Expected++
					}
					var copies [processes]bool
					for range 1 + random.IntN(50)/49 { // one in 50 crosses to another process, perhaps
						copies[random.IntN(processes)] = true
					}
					if random.IntN(100) == 0 {
						copies = [processes]bool{}
						if expected {
							want.Missing++
						}
					}
					got, acked := 0, [processes]bool{}
					for i, has := range copies {
						if !has {
							continue
						}
						got++
						readers[i].Received(m.id, m.seq, int32(i), 1)
						if acked[i] = random.IntN(3) > 0; acked[i] {
							readers[i].Settled(m.id, m.seq)
						}
					}
					received[m], settled[m] = copies, acked
					if got > 0 {
						want.Received++
						if !expected {
							want.Unexpected++
						}
					}
					if acked != ([processes]bool{}) {
						want.Settled++
					}
					before := false // whether a process before this one has settled it
					for i := range processes {
						if !copies[i] {
							continue
						}
						if got--; got >= 0 && i > firstOf(copies) {
							if acked[i] && before {
								want.Duplicated++
							} else {
								want.Redelivered++
							}
						}
						before = before || acked[i]
					}
				}
			}
		}
		var all []account.ProducerSnapshot
		var shares []account.GroupSnapshot
		for i := range topics {
			l := recoded(t, topics[i].Snapshot())
			all = append(all, l.Producers...)
			shares = append(shares, l.Groups...)
			if own := l.Groups[0].Tally; own.Foreign == 0 || own.Missing == 0 {
				t.Errorf("process %d alone: %+v", i, own)
			}
		}
		got := merged(t, all, shares, func(uint64) account.Terms {
			return account.Terms{Spans: account.Everything(), Certain: account.Everything(), Given: account.Given{Possible: messages / 2}}
		}, 5)
		if got.Tally != want {
			t.Errorf("seed %d:\n got %+v\nwant %+v", seed, got.Tally, want)
		}
		held, possible := uint64(0), uint64(0)
		for m, copies := range received {
			if copies != ([processes]bool{}) && settled[m] == ([processes]bool{}) {
				held++
			}
		}
		for _, p := range all {
			for _, r := range merged(t, []account.ProducerSnapshot{p}, shares, everything, messages).Ranges {
				if r.From < messages/2 {
					possible += min(r.To+1, messages/2) - r.From
				}
			}
		}
		if got.Held != held || got.Sure != 0 || got.Possible != possible {
			t.Errorf("seed %d: %d held, %d and %d missing below the bounds; want %d, none and %d", seed, got.Held, got.Sure, got.Possible, held, possible)
		}
		if ranges := got.Ranges; len(ranges) != 5 || received[message{ranges[0].ID, ranges[0].From}] != ([processes]bool{}) {
			t.Errorf("ranges %v", ranges)
		}
	}
}

func everything(uint64) account.Terms {
	return account.Terms{Spans: account.Everything(), Certain: account.Everything()}
}

func firstOf(copies [3]bool) int {
	for i, has := range copies {
		if has {
			return i
		}
	}
	return len(copies)
}

func TestMergeKeepsToTheBounds(t *testing.T) {
	sender, receiver := account.NewTopic(), account.NewTopic()
	sender.Share()
	receiver.Share()
	p := sender.Producer(1)
	reader := receiver.Group("g", account.New).Reader()
	for range 100 {
		p.Expect(p.Next())
	}
	for seq := range uint64(40) {
		reader.Received(1, 20+seq, 0, 2) // 20 to 59, which the broker says it delivered before
	}
	reader.Received(9, 3, 0, 1) // a producer that nobody has
	if v := reader.Received(1, 1<<40, 0, 1); v != account.Foreign {
		t.Errorf("a number beyond all bounds: %v", v)
	}
	if v := reader.Received(1, 20, 0, 2); v != account.Redelivered|account.Foreign {
		t.Errorf("a second copy: %v", v)
	}
	own := receiver.Groups()[0].Tally()
	if want := (account.Tally{Redelivered: 41, Foreign: 43}); own != want {
		t.Errorf("the receiver alone: %+v, want %+v", own, want)
	}
	terms := func(uint64) account.Terms {
		return account.Terms{
			Spans: []account.Bounds{{From: 10, Until: 30}, {From: 40, Until: 70}}, Certain: []account.Bounds{{From: 11, Until: 30}, {From: 40, Until: 68}},
			Given: account.Given{Sure: 12, Possible: 65}, Untold: []account.Bounds{{From: 69, Until: 1000}, {From: 65, Until: 68}},
		}
	}
	reader.Drained(1, 80) // which nobody expects
	got := merged(t, recoded(t, sender.Snapshot()).Producers, recoded(t, receiver.Snapshot()).Groups, terms, 9)
	want := account.Tally{Expected: 50, Received: 40, Missing: 20, Unexpected: 10, Redelivered: 41, Foreign: 1}
	if got.Tally != want || got.Sure != 1 || got.Possible != 15 || got.Doubted != 2 || got.Untold != 4 || got.Held != 41 {
		t.Errorf("got %+v, want %+v, 1 and 15 of it missing below the bounds, 2 in doubt, 4 untold, 41 held", got, want)
	}
	if ranges := got.Ranges; len(ranges) != 2 || ranges[0] != (account.Range{ID: 1, From: 10, To: 19}) || ranges[1] != (account.Range{ID: 1, From: 60, To: 69}) {
		t.Errorf("ranges %v", ranges)
	}
}

func TestAnUnsharedTopicRemembersNothingOfOthers(t *testing.T) {
	topic := account.NewTopic()
	reader := topic.Group("g", account.Earliest).Reader()
	for range 2 {
		if v := reader.Received(5, 0, 0, 1); v != account.Foreign {
			t.Errorf("%v", v)
		}
	}
	if l := topic.Snapshot(); len(l.Groups[0].Sources) != 0 {
		t.Errorf("%+v", l)
	}
}

func FuzzSet(f *testing.F) {
	topic := account.NewTopic()
	p := topic.Producer(1)
	for n := range uint64(100_000) { // of each kind of container one
		if seq := p.Next(); n < 70_000 || n%3 == 0 && n < 90_000 || n == 99_000 {
			p.Expect(seq)
		}
	}
	var known bytes.Buffer
	if _, err := topic.Snapshot().Producers[0].Expected.(account.Set).WriteTo(&known); err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", "\x00", known.String(), known.String()[:known.Len()/2], known.String() + "\x00", "\xff\xff\xff\xff\xff\xff\xff\xff"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := account.ReadSet(text)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if _, err := s.WriteTo(&again); err != nil {
			t.Fatal(err)
		}
		if same, err := account.ReadSet(again.Bytes()); err != nil || !same.Equal(s) {
			t.Errorf("%v: %d numbers, then %d", err, s.Len(), same.Len())
		}
	})
}
