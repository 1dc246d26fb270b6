package executors

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// company is the processes of a test, which meet in memory.
type company struct {
	wait time.Duration // for a process that has not come

	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, when something has
	points  map[string]map[int]int64
	there   map[int]bool // false once a process has parted
	begun   bool         // without those that have not come
	told    bool         // of them
}

func newCompany(wait time.Duration) *company {
	return &company{wait: wait, changed: make(chan struct{}), points: map[string]map[int]int64{}, there: map[int]bool{}}
}

// sibling is one of a company.
type sibling struct {
	*company
	index, count int
}

// meet has a process of so many take part, until it parts.
func (c *company) meet(index, count int) (meet func(*lib.ExecutionState), part func()) {
	s := sibling{c, index, count}
	c.change(func() { c.there[index] = true })
	meet = func(es *lib.ExecutionState) {
		Meet(es, func(context.Context) Siblings { return s })
		for _, point := range Beginning(es) {
			s.Reach(point)
		}
	}
	return meet, func() { c.change(func() { c.there[index] = false }) }
}

func (c *company) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	close(c.changed)
	c.changed = make(chan struct{})
}

func (s sibling) Reach(point string) {
	s.change(func() {
		if s.points[point] == nil {
			s.points[point] = map[int]int64{}
		}
		if s.points[point][s.index] == 0 {
			s.points[point][s.index] = driver.Now() + int64(100*time.Millisecond)
		}
	})
}

func (s sibling) Await(ctx context.Context, point string) (at int64, err error) {
	limit := time.NewTimer(s.wait)
	defer limit.Stop()
	for {
		s.mu.Lock()
		at, err = 0, nil
		wait := false
		for i := range s.count {
			at = max(at, s.points[point][i])
			there, came := s.there[i]
			wait = wait || there && s.points[point][i] == 0 || !came && !s.begun
			if !came && !s.told {
				err = fmt.Errorf("process %d of %d did not come", i+1, s.count)
			}
		}
		changed := s.changed
		s.told = s.told || !wait && err != nil
		s.mu.Unlock()
		if !wait {
			return at, err
		}
		select {
		case <-changed:
		case <-limit.C:
			s.change(func() { s.begun = true })
		case <-ctx.Done():
			return at, ctx.Err()
		}
	}
}

// segments are those of so many processes, as k6-operator has them.
func segments(count int) (all []string, sequence string) {
	cuts := []string{"0"}
	for i := range count - 1 {
		cuts = append(cuts, fmt.Sprintf("%d/%d", i+1, count))
	}
	cuts = append(cuts, "1")
	for i := range count {
		all = append(all, cuts[i]+":"+cuts[i+1])
	}
	return all, strings.Join(cuts, ",")
}

// Three processes that k6-operator starts one after the other, each with consumers that take their time: nothing is due in any before all are ready, and
// the schedules of all begin at one time.
func TestProcessesBeginTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 3
		c := newCompany(time.Minute)
		all, sequence := segments(count)
		began := driver.Now()
		starts := make([]time.Duration, count) // since then
		ready, looped := make([]time.Duration, count), make([]time.Duration, count)
		var parts [count]func()
		played := make([]*played, count)
		var there sync.WaitGroup
		for i := range count {
			there.Go(func() {
				time.Sleep(time.Duration(i) * 1200 * time.Millisecond)
				starts[i] = time.Duration(driver.Now() - began)
				var meet func(*lib.ExecutionState)
				meet, parts[i] = c.meet(i, count)
				opening := time.Duration(1+i) * 2 * time.Second
				ready[i] = starts[i] + opening
				played[i] = play{
					scenarios: `{"consume":{"executor":"consumers","vus":3},
						"loop":{"executor":"per-vu-iterations","vus":3,"maxDuration":"30s"},
						"produce":{"executor":"open-arrival-rate","rate":9,"duration":"5s","preAllocatedVUs":3},
						"later":{"executor":"open-arrival-rate","rate":9,"duration":"2s","preAllocatedVUs":3,"startTime":"3s"}}`,
					segment: all[i], sequence: sequence, meet: meet,
					work: map[string]func(context.Context) error{
						"consume": func(ctx context.Context) error {
							return consume(opening, 500*time.Millisecond, in(0))(ctx)
						}, "produce": atOnce, "later": atOnce,
						"loop": func(ctx context.Context) error {
							logger, _ := logtest.NewNullLogger()
							at, err := AwaitTurn(ctx, logger)
							looped[i] = time.Duration(at - began)
							return err
						},
					},
				}.inBubble(t)
			})
		}
		there.Wait()
		for _, part := range parts {
			part()
		}
		last := ready[count-1]
		for i, p := range played {
			first, later := starts[i]+p.begun["produce"][0], starts[i]+p.begun["later"][0]
			// Of the nine a second each has three: its own first is due up to two ninths of a second after the schedule's beginning.
			own := time.Duration(i) * time.Second / 9
			if first < last || first-own > last+200*time.Millisecond {
				t.Errorf("process %d: the first was due at %v, and the last consumers were ready at %v", i, first, last)
			}
			if apart := (first - own - (starts[0] + played[0].begun["produce"][0])).Abs(); apart > 5*time.Millisecond {
				t.Errorf("process %d began %v apart", i, apart)
			}
			if between := later - first; (between - 3*time.Second).Abs() > 5*time.Millisecond {
				t.Errorf("process %d: the second scenario began %v after the first", i, between)
			}
			if apart := (looped[i] - looped[0]).Abs(); apart > 5*time.Millisecond || looped[i] < last {
				t.Errorf("process %d: its loop began at %v, the first one's at %v", i, looped[i], looped[0])
			}
			if n := len(p.begun["produce"]); n != 15 {
				t.Errorf("process %d had %d arrivals", i, n)
			}
			for _, e := range p.log.AllEntries() {
				if strings.Contains(e.Message, "going on without") {
					t.Error(e.Message)
				}
			}
		}
	})
}

// A process that does not come is waited for once, as long as was said.
func TestAProcessThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompany(10 * time.Second)
		all, sequence := segments(2)
		meet, part := c.meet(0, 2)
		r := play{
			scenarios: `{"consume":{"executor":"consumers","vus":2},"produce":{"executor":"open-arrival-rate","rate":10,"duration":"5s","preAllocatedVUs":2},
				"later":{"executor":"open-arrival-rate","rate":10,"duration":"2s","preAllocatedVUs":2,"startTime":"3s"}}`,
			segment: all[0], sequence: sequence, meet: meet,
			work: map[string]func(context.Context) error{"consume": consume(time.Second, 500*time.Millisecond, in(0)), "produce": atOnce, "later": atOnce},
		}.inBubble(t)
		part()
		if first := r.begun["produce"][0]; first < 10*time.Second || first > 11*time.Second || len(r.begun["produce"]) != 25 {
			t.Errorf("%d arrivals from %v", len(r.begun["produce"]), first)
		}
		said := 0
		for _, e := range r.log.AllEntries() {
			if strings.Contains(e.Message, "process 2 of 2 did not come") {
				said++
			}
		}
		if said != 1 {
			t.Errorf("it was said %d times: %v", said, r.log.AllEntries())
		}
	})
}

// A process whose segment has no VU of the consumers waits for those of the others.
func TestProcessesThatHaveNoConsumers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 2
		c := newCompany(time.Minute)
		all, sequence := segments(count)
		scenarios := `{"consume":{"executor":"consumers","vus":1,"duration":"20s"},"produce":{"executor":"open-arrival-rate","rate":2,"duration":"1s","preAllocatedVUs":2}}`
		var there sync.WaitGroup
		var mu sync.Mutex
		began := driver.Now()
		for i := range count {
			there.Go(func() {
				meet, part := c.meet(i, count)
				defer part()
				r := play{
					scenarios: scenarios, segment: all[i], sequence: sequence, meet: meet,
					work: map[string]func(context.Context) error{"consume": consume(4*time.Second, 500*time.Millisecond, in(0)), "produce": atOnce},
				}.inBubble(t)
				mu.Lock()
				defer mu.Unlock()
				if got := r.begun["produce"]; len(got) != 1 || got[0] < 4*time.Second || got[0] > 5*time.Second {
					t.Errorf("process %d began at %v", i, got)
				}
			})
		}
		there.Wait()
		if took := time.Duration(driver.Now() - began); took > 50*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Consumers see the processes out that still send, and those whose consumers may send on what they have got: however long that takes, also longer than anybody is
// waited for at the start, and whether or not a process has consumers itself.
func TestConsumersEndLastInAllProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		consumers     int
		sends, works  time.Duration // how long the second process does
		least, atMost time.Duration // until the first one's consumers are over
	}{
		"one sends":             {2, 20 * time.Second, 0, 20 * time.Second, 25 * time.Second},
		"one works":             {2, 0, 30 * time.Second, 32 * time.Second, 37 * time.Second},
		"one without consumers": {1, 20 * time.Second, 0, 20 * time.Second, 25 * time.Second},
		"none takes longer":     {2, 0, 0, 2 * time.Second, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const count = 2
				company := newCompany(10 * time.Second)
				all, sequence := segments(count)
				scenarios := fmt.Sprintf(`{"consume":{"executor":"consumers","vus":%d},"produce":{"executor":"open-arrival-rate","rate":4,"duration":"2s","preAllocatedVUs":20}}`, c.consumers)
				var asked [count]atomic.Int64
				over := make([]time.Duration, count)
				var there sync.WaitGroup
				for i := range count {
					there.Go(func() {
						meet, part := company.meet(i, count)
						defer part()
						send, arrived := atOnce, in(0)
						if i == 1 {
							send, arrived = lasting(c.sends), in(c.works)
						}
						r := play{
							scenarios: scenarios, segment: all[i], sequence: sequence, meet: meet,
							work: map[string]func(context.Context) error{"produce": send, "consume": consume(0, 500*time.Millisecond, func(ctx context.Context, idle func(int64) int64) error {
								if asked[i].Add(1) > 1 {
									return nil // nothing has changed
								}
								return arrived(ctx, idle)
							})},
						}.inBubble(t)
						over[i] = r.over["consume"]
					})
				}
				there.Wait()
				if over[0] < c.least || over[0] > c.atMost || asked[0].Load() != 2 {
					t.Errorf("they were over at %v, and it was asked %d times whether everything had arrived", over[0], asked[0].Load())
				}
			})
		})
	}
}
