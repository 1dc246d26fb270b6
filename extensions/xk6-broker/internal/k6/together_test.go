package k6

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/coordinator"
)

// inProcesses runs the body in setup or teardown of a test's processes, side by side, as status
// says; those of `absent` never come. Their coordinator waits for one for so long; with 0 they have
// none.
func inProcesses(t *testing.T, count int, timeout time.Duration, status lib.ExecutionStatus, topic, body string, absent ...int) []error {
	t.Helper()
	environment := map[string]string{"BROKER_RUN": topic}
	cuts := []string{"0"}
	for i := 1; i < count; i++ {
		cuts = append(cuts, fmt.Sprintf("%d/%d", i, count))
	}
	cuts = append(cuts, "1")
	errs := make([]error, count)
	if timeout > 0 {
		server := httptest.NewServer(coordinator.New(coordinator.Config{Name: topic, Processes: count, Timeout: timeout, Tell: func(string) {}}))
		defer server.Close()
		environment["BROKER_COORDINATOR"] = server.URL
	}
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			for _, one := range absent {
				if one == i {
					return
				}
			}
			s := newScriptIn(t, environment)
			defer func() {
				if client, _ := s.module.run.client(context.Background()); client != nil {
					client.Close()
				}
			}()
			s.set("topic", topic)
			s.mustRun(`globalThis.conn = broker.connect('apart://127.0.0.1:7', { drainTimeout: 1 }); globalThis.p = conn.producer(topic), globalThis.c = conn.consumer(topic, { group: 'g' });`)
			s.divided(cuts[i]+":"+cuts[i+1], strings.Join(cuts, ","), `{"p":{"executor":"producers"}}`)
			lib.GetExecutionState(s.ctx).SetExecutionStatus(status)
			if status == lib.ExecutionStatusTeardown { // which k6 runs outside of the test, so to speak
				s.mustRun(`await conn.backlog(topic, 'g');`)
				s.ctx = t.Context()
			}
			_, errs[i] = s.run(body)
		})
	}
	all.Wait()
	return errs
}

// A setup that makes a topic anew and fills it leaves it filled once, whichever process comes
// first: what one makes or sends no other deletes.
func TestSetupInAllProcessesIsAsInOne(t *testing.T) {
	for round := range 2 {
		topic := fmt.Sprintf("together-%d", round)
		left := newScript(t).begin()
		left.set("topic", topic)
		left.mustRun(`globalThis.conn = broker.connect('apart://127.0.0.1:7', { drainTimeout: 1 });
			await conn.createTopic(topic); await conn.producer(topic).send(['left', 'over']);`)
		for i, err := range inProcesses(t, 3, time.Minute, lib.ExecutionStatusSetup, topic, `
			await conn.deleteTopic(topic);
			await conn.createTopic(topic);
			await p.produce({ count: 100 });`) {
			if err != nil {
				t.Errorf("process %d: %v", i+1, err)
			}
		}
		left.mustRun(`const all = await conn.consumer(topic, { group: 'new', start: 'earliest' }).consume({ idle: '1s' });
			if (all.received !== 100) throw new Error(all.received + ' of 100');`)
	}
}

// A teardown that deletes a topic waits for all processes. Where one never comes, or they cannot
// talk with each other, nothing is deleted, and an error says so, also to scripts that go on where
// a broker cannot delete.
func TestTeardownDestroysNothingThatOthersUse(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration
		absent  []int
		want    string // "" where it is deleted
	}{
		"all":   {time.Minute, nil, ""},
		"alone": {0, nil, "it needs a coordinator if a test has 3 processes"},
		"gone":  {500 * time.Millisecond, []int{2}, "all processes of the test must come to it first"},
	} {
		t.Run(name, func(t *testing.T) {
			topic := "kept-" + name
			s := newScript(t).begin()
			s.set("topic", topic)
			s.mustRun(`globalThis.conn = broker.connect('apart://127.0.0.1:7', { drainTimeout: 1 }); await conn.createTopic(topic);`)
			errs := inProcesses(t, 3, c.timeout, lib.ExecutionStatusTeardown, topic,
				`await conn.deleteTopic(topic).catch((error) => { if (error.kind !== 'unsupported') throw error; });`, c.absent...)
			for i, err := range errs {
				switch {
				case len(c.absent) > 0 && c.absent[0] == i:
				case (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want):
					t.Errorf("process %d: %v, want %q", i+1, err, c.want)
				}
			}
			if _, err := s.run(`await conn.deleteTopic(topic)`); (err == nil) != (c.want != "") {
				t.Errorf("is it there still? %v", err)
			}
		})
	}
}
