package k6

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

const phasing = `
	globalThis.conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 });
	await conn.createTopic('phased');
	globalThis.p = conn.producer('phased');`

// A phase that a script begins has what comes after the call, and a threshold on it is decided by
// that alone.
func TestAScriptDividesItsRun(t *testing.T) {
	s := newScript(t).begin()
	s.mustRun(phasing + `
		await p.produce({ count: 300 });
		broker.phase('peak');
		broker.phase('peak');
		await p.produce({ count: 2000 });
		broker.phase('end');
		await p.produce({ count: 7 });`)
	r := s.module.run
	of := r.buildResult()
	if names := strings.Join(of.PhaseNames(), " "); names != "start peak end" || of.Leading != "" {
		t.Fatalf("the phases are %q, and %q leads", names, of.Leading)
	}
	for phase, want := range map[string]int64{"start": 300, "peak": 2000, "end": 7} {
		if n := of.Topics[0].Phases[phase].Counts["confirmed"]; n != want {
			t.Errorf("%s: %d confirmed, want %d", phase, n, want)
		}
	}
	if len(of.Marks) != 2 || of.Marks[0].What != "phase peak" {
		t.Errorf("marks: %v", of.Marks)
	}
	j := &judge{run: r, result: of}
	j.result.Verdict.Latencies = true
	tags := r.limits.noTags.With("topic", "phased")
	for _, c := range []struct {
		phase, source, because string
		judged                 bool
	}{
		{"peak", "p(99)<60000", "", true},
		{"end", "p(99)<60000", "of 7 samples 0 lie beyond p99", false},
		{"start", "p(99)<60000", `there was no phase "start"`, false},
		{"pek", "p(99)<60000", `there was no phase "pek": there were start, peak, end`, false},
	} {
		condition, err := verdict.ParseCondition(c.source)
		if err != nil {
			t.Fatal(err)
		}
		d := latency(recording.PublishLatency)(j, tags.With(phaseTag, c.phase), condition)
		if d.Judged != c.judged || d.Held != c.judged || !strings.Contains(d.Why, c.because) {
			t.Errorf("%s %s: %+v", c.phase, c.source, d)
		}
	}
	for call, want := range map[string]string{`broker.phase('')`: "phase: the name is empty", `broker.phase()`: "", `connectLate()`: errLateWarmUp.Error()} {
		s.mustRun(`globalThis.connectLate = () => broker.connect('memory://127.0.0.1:7', { warmup: '1s' })`)
		if _, err := s.run(call); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// The warm-up ends so long after the first scenario that uses a broker began, and what a script
// calls the next phase meanwhile begins then.
func TestTheMeasuredWindowComesAfterTheWarmUp(t *testing.T) {
	for named, want := range map[string]string{"": "warmup measured", "broker.phase('peak');": "warmup peak"} {
		s := newScript(t)
		s.mustRun(`globalThis.early = broker.connect('memory://127.0.0.1:7', { warmup: '2h' })`)
		s.begin()
		s.mustRun(phasing + `await p.produce({ count: 100 });`)
		r := s.module.run
		if r.warmUp.begun.Load() || !r.warmUp.on {
			t.Errorf("before any scenario: begun %v, on %v", r.warmUp.begun.Load(), r.warmUp.on)
		}
		of := r.buildResult()
		if !reasontest.Has(of.Verdict.Invalid(), "no-measured-window why=warm-up warmUp=7200") {
			t.Errorf("a run that ended within its warm-up is valid: %v", of.Verdict)
		}
		length, began := time.Hour, time.Now()
		if named == "" { // whether it ends before or after the 200 messages makes no difference here
			length = 50 * time.Millisecond
		}
		r.warmUp.mu.Lock()
		r.warmUp.length = length
		r.warmUp.mu.Unlock()
		before := s.ctx
		ctx, end := context.WithCancel(lib.WithScenarioState(before, &lib.ScenarioState{Name: "p", StartTime: began}))
		s.ctx = ctx
		s.mustRun(named + `await p.produce({ count: 200 });`)
		if named != "" {
			r.endWarmUp()
		}
		for begun := false; !begun; _, begun = r.collector.During(strings.Fields(want)[1]) {
			time.Sleep(time.Millisecond)
		}
		s.mustRun(`await p.produce({ count: 5000 });`)
		end()
		s.ctx = before
		of = r.buildResult()
		if names := strings.Join(of.PhaseNames(), " "); names != want {
			t.Errorf("the phases are %q, want %q", names, want)
		}
		last := of.Phases[1]
		if n := of.Topics[0].Phases[last.Name].Counts["confirmed"]; n < 5000 || n > 5200 {
			t.Errorf("%d messages after the warm-up", n)
		}
		if leads := of.Leading == result.Measure; leads != (named == "") {
			t.Errorf("%q leads", of.Leading)
		}
	}
}

func TestAWarmUpIsADuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"30s": 30 * time.Second, "1500": 1500 * time.Millisecond, "": 0, "0": 0} {
		got, _, err := warmUpOf(func(string) (string, bool) { return text, true })
		if err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"soon", "-1s", "30 s"} {
		if _, _, err := warmUpOf(func(string) (string, bool) { return text, true }); err == nil || !strings.Contains(err.Error(), "BROKER_WARMUP") {
			t.Errorf("%q: %v", text, err)
		}
	}
	w := warmUp{length: time.Second, set: true}
	if w.want(time.Hour); w.asked() != time.Second {
		t.Errorf("a connection has the last word: %v", w.asked())
	}
	w = warmUp{}
	w.want(time.Second)
	if w.want(time.Millisecond); w.asked() != time.Second {
		t.Errorf("the longest is not it: %v", w.asked())
	}
}
