package k6

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.k6.io/k6/v2/lib"
)

// divided begins a script in a process that has an execution segment of the test.
func (s *script) divided(segment, sequence, scenarios string) *script {
	s.t.Helper()
	s.begin()
	test := lib.GetExecutionState(s.ctx).Test
	if err := json.Unmarshal([]byte(scenarios), &test.Options.Scenarios); err != nil {
		s.t.Fatal(err)
	}
	of, err := lib.NewExecutionSegmentFromString(segment)
	if err != nil {
		s.t.Fatal(err)
	}
	if sequence != "" {
		all, err := lib.NewExecutionSegmentSequenceFromString(sequence)
		if err != nil {
			s.t.Fatal(err)
		}
		test.Options.ExecutionSegmentSequence = &all
	}
	et, err := lib.NewExecutionTuple(of, test.Options.ExecutionSegmentSequence)
	if err != nil {
		s.t.Fatal(err)
	}
	s.ctx = lib.WithExecutionState(s.ctx, lib.NewExecutionState(test, et, 1, 1))
	return s
}

// What a process is of a test its execution segment says, as k6-operator gives it: how many there
// are, which it is, and what it has no VU of.
func TestAProcessKnowsWhichItIs(t *testing.T) {
	const scenarios = `{"loop":{"executor":"per-vu-iterations"},"few":{"executor":"constant-vus","vus":3,"duration":"1s"},"produce":{"executor":"producers"}}`
	for name, c := range map[string]struct {
		run, segment, sequence string
		processes, index       int
		idle, says             string
		vus                    uint64 // of the scenario of producers, in all processes
	}{
		"whole":       {"", "0:1", "", 0, -1, "", "", 1},
		"first":       {"nightly", "0:1/4", "0,1/4,2/4,3/4,1", 4, 0, "", "", 4},
		"last":        {"nightly", "3/4:1", "0,1/4,2/4,3/4,1", 4, 3, "few loop", "", 4},
		"no sequence": {"nightly", "1/2:1", "", 0, -1, "loop", "", 2},
		"nameless":    {"", "0:1/2", "0,1/2,1", 0, -1, "", "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScriptIn(t, map[string]string{"BROKER_RUN": c.run}).divided(c.segment, c.sequence, scenarios)
			s.mustRun(`const conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 }); await conn.createTopic('t');`)
			r := s.module.run.buildResult()
			if n, index := s.module.run.Processes(); n != c.processes || index != c.index || r.Processes != n {
				t.Errorf("process %d of %d, and in the result of %d", index, n, r.Processes)
			}
			idle := ""
			if r.Segment != nil {
				idle = strings.Join(r.Segment.Idle, " ")
			}
			if (r.Segment == nil) != (c.segment == "0:1") || idle != c.idle {
				t.Errorf("segment %+v", r.Segment)
			}
			if said := s.says(); !strings.Contains(said, c.says) || c.says == "" && said != "" {
				t.Errorf("says %q", said)
			}
			if vus := r.Test.Scenarios[2].VUs; r.Test.Scenarios[2].Name != "produce" || vus != c.vus {
				t.Errorf("%+v", r.Test.Scenarios)
			}
		})
	}
}

// The loops of setup, which each process runs, are divided, so that together they fill a topic
// once.
func TestSetupFillsATopicOnceInAllProcesses(t *testing.T) {
	sent := 0.0
	for _, segment := range []string{"0:1/3", "1/3:2/3", "2/3:1"} {
		s := newScriptIn(t, map[string]string{"BROKER_RUN": "nightly"}).divided(segment, "0,1/3,2/3,1", `{"p":{"executor":"producers"}}`)
		n, ok := s.mustRun(`
			const conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 });
			await conn.createTopic('once');
			const filled = await conn.producer('once').produce({ count: 100, producers: 2 });
			if (filled.confirmed !== filled.sent) throw new Error(JSON.stringify(filled));
			return filled.sent;`).(int64)
		if !ok || n < 33 || n > 34 {
			t.Errorf("segment %s sent %d", segment, n)
		}
		sent += float64(n)
	}
	if sent != 100 {
		t.Errorf("%v of 100", sent)
	}
}

// A test begins when k6 says so, which may be long after its process has: k6-operator has it stand
// paused.
func TestATestBeginsWhenK6SaysSo(t *testing.T) {
	s := newScript(t)
	process := s.module.run.Started
	time.Sleep(50 * time.Millisecond) // it stands for the time in which k6 is paused
	s.begin()
	lib.GetExecutionState(s.ctx).MarkStarted()
	s.mustRun(`const conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 }); await conn.createTopic('t');`)
	r := s.module.run.buildResult()
	if later := r.Started.UnixNano() - process; later < int64(50*time.Millisecond) || r.Seconds > time.Since(r.Started).Seconds() {
		t.Errorf("it began %v after the process, and lasted %v s", time.Duration(later), r.Seconds)
	}
}
