package account_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// model is the accounting of one group as one would write it down: in maps, with nothing left out.
type model struct {
	spans             map[uint64][]account.Bounds // by producer
	received, settled map[message]bool
	drained           map[message]bool
	cleared           map[message]bool // received, and settled when they were read to complete the account
	tally             account.Tally
	open              bool
}

type message struct{ id, seq uint64 }

// seen is what a reader of the model remembers: the highest first copy of each producer and partition.
type seen map[struct {
	id        uint64
	partition int32
}]uint64

func (m *model) receive(s seen, numbered map[uint64]uint64, msg message, partition, attempt int32) account.Reception {
	if msg.seq >= numbered[msg.id] {
		m.tally.Foreign++
		return account.Foreign
	}
	var v account.Reception
	if !m.received[msg] {
		v |= account.First
	}
	if attempt > 1 || m.received[msg] && !m.settled[msg] {
		v |= account.Redelivered
		m.tally.Redelivered++
	}
	if m.received[msg] && m.settled[msg] {
		v |= account.Duplicated
		m.tally.Duplicated++
	}
	m.received[msg] = true
	if m.drained[msg] {
		m.cleared[msg] = true
	}
	if v == account.First {
		lane := struct {
			id        uint64
			partition int32
		}{msg.id, partition}
		if high, ok := s[lane]; ok && msg.seq < high {
			m.tally.Reordered++
			v |= account.Reordered
		}
		s[lane] = max(s[lane], msg.seq)
	}
	return v
}

func (m *model) expects(msg message) bool {
	return slices.ContainsFunc(m.spans[msg.id], func(b account.Bounds) bool { return b.From <= msg.seq && msg.seq < b.Until })
}

func (m *model) held() (n uint64) {
	for msg := range m.received {
		if !m.settled[msg] && !m.cleared[msg] {
			n++
		}
	}
	return n
}

// count completes the tally, and counts what is outstanding.
func (m *model) count(expected map[message]bool, removed map[uint64]uint64) (t account.Tally, outstanding uint64) {
	t = m.tally
	for msg := range expected {
		if !m.expects(msg) {
			continue
		}
		t.Expected++
		if m.received[msg] || m.drained[msg] {
			continue
		}
		t.Missing++
		if msg.seq >= removed[msg.id] {
			outstanding++
		}
	}
	t.Received = uint64(len(m.received))
	for msg := range m.drained {
		if !m.received[msg] && m.expects(msg) {
			t.Drained++
		}
	}
	t.Unexpected = t.Received + t.Drained - (t.Expected - t.Missing)
	t.Settled = uint64(len(m.settled))
	return t, outstanding
}

// TestAgreesWithTheModel does at random whatever can be done, to the accounting and to the model, and compares all that
// they tell.
func TestAgreesWithTheModel(t *testing.T) {
	seeds := uint64(8)
	switch {
	case testing.Short():
		seeds = 1
	case raced:
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			topic := account.NewTopic()
			producers := map[uint64]*account.Producer{}
			numbered, removed := map[uint64]uint64{}, map[uint64]uint64{}
			expected := map[message]bool{}
			groups := map[string]*account.Group{}
			models := map[string]*model{}
			type reader struct {
				*account.Reader
				*model
				seen
			}
			var readers []reader
			producers[0], numbered[0] = topic.Producer(0), 0
			pick := func() (id, seq uint64) { // mostly near the end, as in a run
				id = uint64(r.IntN(4))
				if producers[id] == nil { // its messages would be another topic's
					id = 0
				}
				n := numbered[id]
				if n == 0 || r.IntN(50) == 0 {
					return id, n + uint64(r.IntN(3))
				}
				if r.IntN(2) == 0 {
					return id, n - 1 - r.Uint64N(min(n, 100))
				}
				return id, r.Uint64N(n)
			}
			partitions := []int32{0, 1, 2, 1023, 1024, -1, math.MaxInt32, math.MinInt32}
			for range 3000 {
				switch r.IntN(16) {
				case 0: // a producer comes, or comes again
					id := uint64(r.IntN(4))
					p := topic.Producer(id)
					if known, ok := producers[id]; ok && known != p {
						t.Fatal("two producers of one ID")
					} else if !ok {
						producers[id], numbered[id] = p, 0
						for _, m := range models {
							if m.open {
								m.spans[id] = []account.Bounds{{Until: math.MaxUint64}}
							}
						}
					}
				case 1: // a group comes
					name := fmt.Sprint(r.IntN(3))
					earliest := r.IntN(2) == 1
					g := topic.Group(name, earliest)
					if known, ok := groups[name]; ok {
						if known != g {
							t.Fatal("two groups of one name")
						}
						continue
					}
					m := &model{
						spans: map[uint64][]account.Bounds{}, received: map[message]bool{}, settled: map[message]bool{},
						drained: map[message]bool{},
						cleared: map[message]bool{}, open: earliest,
					}
					for id := range producers {
						if m.open {
							m.spans[id] = []account.Bounds{{From: removed[id], Until: math.MaxUint64}}
						}
					}
					groups[name], models[name] = g, m
				case 2: // a consumer comes
					for name, g := range groups {
						if len(readers) < 6 {
							readers = append(readers, reader{g.Reader(), models[name], seen{}})
						}
					}
				case 3: // a group is ready
					name := fmt.Sprint(r.IntN(3))
					if g := groups[name]; g != nil {
						g.Ready()
						if m := models[name]; !m.open {
							m.open = true
							for id, n := range numbered {
								m.spans[id] = append(m.spans[id], account.Bounds{From: n, Until: math.MaxUint64})
							}
						}
					}
				case 4: // a group leaves, and may come back
					name := fmt.Sprint(r.IntN(3))
					if g := groups[name]; g != nil && r.IntN(5) == 0 {
						g.Close()
						if m := models[name]; m.open {
							m.open = false
							for id, n := range numbered {
								m.spans[id][len(m.spans[id])-1].Until = n
							}
						}
					}
				case 5, 6: // messages are numbered
					id := uint64(r.IntN(4))
					if p := producers[id]; p != nil {
						for range 1 + r.IntN(100) {
							if got := p.Next(); got != numbered[id] {
								t.Fatalf("message %d is numbered %d", numbered[id], got)
							}
							numbered[id]++
						}
					}
				case 7: // a long stretch of messages is sent, and some group gets it whole
					id, _ := pick()
					if p := producers[id]; p != nil && r.IntN(30) == 0 && len(readers) > 0 && numbered[id] < 60_000 {
						reader := readers[r.IntN(len(readers))]
						together := r.IntN(2) == 0
						if together {
							p.ExpectN(p.NextN(20_000), 20_000)
						}
						for range 20_000 {
							seq := numbered[id]
							numbered[id]++
							if !together {
								p.Expect(p.Next())
							}
							expected[message{id, seq}] = true
							got := reader.Received(id, seq, 0, 1)
							if want := reader.receive(reader.seen, numbered, message{id, seq}, 0, 1); got != want {
								t.Fatalf("message %d of %d is %v, want %v", seq, id, got, want)
							}
						}
					}
				case 8, 9: // messages are confirmed
					for range 100 {
						id, seq := pick()
						if seq >= numbered[id] {
							continue
						}
						n := 1
						if r.IntN(2) == 0 {
							producers[id].Expect(seq)
						} else {
							n = r.IntN(int(min(70, numbered[id]-seq)) + 1)
							producers[id].ExpectN(seq, n)
						}
						for i := range uint64(n) {
							expected[message{id, seq + i}] = true
						}
					}
				case 10, 11: // messages arrive
					if len(readers) == 0 {
						continue
					}
					reader := readers[r.IntN(len(readers))]
					for range 100 {
						id, seq := pick()
						partition, attempt := partitions[r.IntN(len(partitions))], int32(r.IntN(3))
						got := reader.Received(id, seq, partition, attempt)
						if want := reader.receive(reader.seen, numbered, message{id, seq}, partition, attempt); got != want {
							t.Fatalf("message %d of %d is %v, want %v", seq, id, got, want)
						}
					}
				case 12: // messages are settled, even some that never arrived
					if len(readers) == 0 {
						continue
					}
					reader := readers[r.IntN(len(readers))]
					for range 100 {
						id, seq := pick()
						n := 1
						if r.IntN(2) == 0 {
							reader.Settled(id, seq)
						} else {
							n = r.IntN(70)
							reader.SettledN(id, seq, n)
						}
						if seq+uint64(n) > numbered[id] { // not all are numbered: nothing is settled
							continue
						}
						for i := range uint64(n) {
							reader.settled[message{id, seq + i}] = true
						}
					}
				case 13: // messages are read to complete the account
					if len(readers) == 0 {
						continue
					}
					reader := readers[r.IntN(len(readers))]
					for range 20 {
						id, seq := pick()
						msg, settled := message{id, seq}, r.IntN(2) == 0
						reader.Drained(id, seq, settled)
						switch {
						case seq >= numbered[id]:
						case !reader.received[msg]:
							reader.drained[msg] = true
						case settled:
							reader.cleared[msg] = true
						}
					}
				case 14: // what is there is removed
					if r.IntN(10) == 0 {
						topic.Remove(0)
						maps.Copy(removed, numbered)
					}
				default:
					for _, g := range groups {
						g.Outstanding()
					}
					if r.IntN(20) > 0 {
						continue // for the model, unlike the accounting, it is slow
					}
					compare(t, groups, models, expected, removed)
				}
			}
			compare(t, groups, models, expected, removed)
		})
	}
}

func compare(t *testing.T, groups map[string]*account.Group, models map[string]*model, expected map[message]bool, removed map[uint64]uint64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		want, outstanding := models[name].count(expected, removed)
		if got := groups[name].Tally(); got != want {
			t.Fatalf("group %s:\n got %+v\nwant %+v", name, got, want)
		}
		if got := groups[name].Outstanding(); got != outstanding {
			t.Fatalf("group %s: %d outstanding, want %d", name, got, outstanding)
		}
		if got, held := groups[name].Held(), models[name].held(); got != held {
			t.Fatalf("group %s: held %+v, want %+v", name, got, held)
		}
	}
}
