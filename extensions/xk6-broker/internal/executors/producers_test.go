package executors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/lib"
)

// Each process has one VU of producers, which calls its function once however long that takes, and consumers end when it has.
func TestProducersRunOnceInEachProcess(t *testing.T) {
	for _, segment := range []string{"", "0:1/3", "1/3:2/3", "99/100:1"} {
		r := play{
			scenarios: `{"consume":{"executor":"consumers"},"produce":{"executor":"producers","startTime":"2s"}}`,
			segment:   segment,
			work: map[string]func(context.Context) error{
				"consume": consume(0, 100*time.Millisecond, in(0)), "produce": lasting(10 * time.Minute),
			},
		}.run(t)
		if begun, over := r.begun["produce"], r.over["produce"]; len(begun) != 1 || begun[0] != 2*time.Second || over != begun[0]+10*time.Minute || r.errors["produce"] != nil {
			t.Errorf("%s: begun %v, over at %v: %v", segment, begun, over, r.errors["produce"])
		}
		if over := r.over["consume"] - r.over["produce"]; over < 0 || over > time.Second {
			t.Errorf("%s: consumers ended %v after the producers", segment, over)
		}
		if n := r.state.GetFullIterationCount(); n == 0 || r.state.GetPartialIterationCount() != 0 {
			t.Errorf("%s: %d iterations, %d interrupted", segment, n, r.state.GetPartialIterationCount())
		}
	}
}

// A function that takes longer than it may is interrupted; one that fails or aborts the test ends like one of k6's own.
func TestProducersEndEarly(t *testing.T) {
	abort := &errext.InterruptError{Reason: errext.AbortTest}
	for name, c := range map[string]struct {
		options string
		work    func(context.Context) error
		over    time.Duration
		partial uint64
		err     error
	}{
		"too long":       {`,"maxDuration":"10s","gracefulStop":"5s"`, lasting(time.Hour), 15 * time.Second, 1, nil},
		"within the end": {`,"maxDuration":"10s","gracefulStop":"5s"`, lasting(14 * time.Second), 14 * time.Second, 0, nil},
		"fails":          {``, func(context.Context) error { return errors.New("no") }, 0, 0, nil},
		"aborts":         {``, func(context.Context) error { return abort }, 0, 1, abort},
	} {
		r := play{scenarios: `{"produce":{"executor":"producers"` + c.options + `}}`, work: map[string]func(context.Context) error{"produce": c.work}}.run(t)
		if r.over["produce"] != c.over || r.state.GetPartialIterationCount() != c.partial || !errors.Is(r.errors["produce"], c.err) {
			t.Errorf("%s: over at %v, %d interrupted, %v", name, r.over["produce"], r.state.GetPartialIterationCount(), r.errors["produce"])
		}
		if Aborted(r.state) != (c.err != nil) {
			t.Errorf("%s: aborted is %v", name, Aborted(r.state))
		}
	}
}

// Loops are divided in the VUs that each process has, and whole in those that k6 has divided.
func TestWhereLoopsAreDivided(t *testing.T) {
	for scenario, divided := range map[string]bool{
		`{"executor":"producers"}`:                                                                 true,
		`{"executor":"consumers","duration":"1s"}`:                                                 true,
		`{"executor":"consumers","duration":"1s","vus":3}`:                                         false,
		`{"executor":"per-vu-iterations","vus":3}`:                                                 false,
		`{"executor":"open-arrival-rate","rate":9,"duration":"1s","maxVUs":1,"preAllocatedVUs":1}`: false,
	} {
		var got Part
		play{scenarios: `{"s":` + scenario + `}`, segment: "1/3:2/3", work: map[string]func(context.Context) error{"s": func(ctx context.Context) error {
			if m, ok := MemberFrom(ctx); ok {
				m.Opening(in(0))()
			}
			got = PartOf(ctx, lib.NewExecutionState(&lib.TestRunState{}, tuple(t, "1/3:2/3", ""), 1, 1))
			return lasting(100 * time.Millisecond)(ctx)
		}}}.run(t)
		want := 9
		if divided {
			want = 3
		}
		if n := got.Scale(9); n != want || got.Share().Count(900) != uint64(100*want) {
			t.Errorf("%s: %d of 9 and %d of 900", scenario, n, got.Share().Count(900))
		}
	}
	es := lib.NewExecutionState(&lib.TestRunState{}, tuple(t, "1/3:2/3", ""), 1, 1)
	if n := PartOf(t.Context(), es).Scale(9); n != 3 {
		t.Errorf("setup has %d of 9", n)
	}
}

// Whatever the segments, each number of the whole is in one of them, and in one only; what they scale adds up too.
func TestPartsAreTheWhole(t *testing.T) {
	source := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		cuts := []string{"0"}
		parts, of := 1+source.IntN(9), 1+source.IntN(40)
		at := slices.Sorted(slices.Values(source.Perm(max(of-1, 0))))
		for _, cut := range at[:min(parts-1, len(at))] {
			cuts = append(cuts, fmt.Sprintf("%d/%d", cut+1, of))
		}
		cuts = append(cuts, "1")
		const whole = 1000
		var numbers []uint64
		scaled := 0
		for i := range cuts[1:] {
			p := Part{tuple(t, cuts[i]+":"+cuts[i+1], strings.Join(cuts, ","))}
			share := p.Share()
			for n := range share.Count(whole) {
				numbers = append(numbers, share.Index(n))
			}
			scaled += p.Scale(100)
		}
		slices.Sort(numbers)
		if len(numbers) != whole || numbers[0] != 0 || numbers[whole-1] != whole-1 || len(slices.Compact(numbers)) != whole || scaled != 100 {
			t.Fatalf("%v: %d numbers of %d, %d of 100", cuts, len(numbers), whole, scaled)
		}
	}
}

// Who inspects a script, as k6-operator does to refuse more pods than the test has VUs, is told that each process has one; who runs it has no more than that.
func TestWhoInspectsIsToldOfAllProcesses(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	var scenarios lib.ScenarioConfigs
	if err := scenarios.UnmarshalJSON([]byte(`{"consume":{"executor":"consumers"},"produce":{"executor":"producers","maxDuration":"1m"}}`)); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string][2]uint64{"run": {2, 2}, "inspect": {2, 2 * mostProcesses}} {
		os.Args = []string{"k6", command, "--execution-requirements", "script.js"}
		steps := scenarios.GetFullExecutionRequirements(tuple(t, "", ""))
		if got := [2]uint64{lib.GetMaxPlannedVUs(steps), lib.GetMaxPossibleVUs(steps)}; got != want {
			t.Errorf("k6 %s: %v VUs, want %v", command, got, want)
		}
	}
}

func TestMistakesInProducersAreNamed(t *testing.T) {
	for options, want := range map[string]string{
		`{"maxDuration":"0s"}`:    `option "maxDuration": 0s is not more than 0`,
		`{"vus":3}`:               `executor producers: json: unknown field "vus"`,
		`{"gracefulStop":"-1s"}`:  `gracefulStop`,
		`{"maxDuration":"never"}`: `scenario orders`,
	} {
		c, err := lib.GetParsedExecutorConfig("orders", ProducersType, []byte(options))
		if err == nil {
			err = errors.Join(c.Validate()...)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
}
