package js

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.k6.io/k6/v2/lib"
)

// hub has the processes of a test wait for each other, and notes who came where.
type hub struct {
	mu      sync.Mutex
	changed chan struct{}
	reached []string
	count   int
	gone    int // a process that nobody hears of; 0 for none
}

type sibling struct {
	*hub
	index int
}

func (m sibling) Reach(point string, _ time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reached = append(m.reached, fmt.Sprintf("%d %s", m.index, point))
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m sibling) Await(ctx context.Context, point string, who func(index int) bool) (int64, error) {
	for {
		m.mu.Lock()
		missing := false
		for i := range m.count {
			if who != nil && !who(i) || slices.Contains(m.reached, fmt.Sprintf("%d %s", i, point)) {
				continue
			}
			if missing = true; i == m.gone && m.gone > 0 {
				m.mu.Unlock()
				return 0, fmt.Errorf("process %d of %d never came", i+1, m.count)
			}
		}
		changed := m.changed
		m.mu.Unlock()
		if !missing {
			return 0, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

const threeSegments = "0,1/3,2/3,1"

var segmentsOfThree = []string{"0:1/3", "1/3:2/3", "2/3:1"}

// processes are the scripts of a test's three processes, which run the body side by side; nil for hub has them not talk with each other.
func threeProcesses(t *testing.T, h *hub, status lib.ExecutionStatus, body string) (errs []error) {
	t.Helper()
	errs = make([]error, len(segmentsOfThree))
	var all sync.WaitGroup
	for i, segment := range segmentsOfThree {
		s := newScript(t).divided("nightly", segment, threeSegments, `{"p":{"executor":"producers"}}`)
		lib.GetExecutionState(s.ctx).SetExecutionStatus(status)
		if h != nil {
			s.module.run.meet = func(context.Context) siblings { return sibling{h, i} }
		}
		s.set("me", i)
		if h == nil || h.gone != i || i == 0 {
			all.Go(func() { _, errs[i] = s.run(body) })
		}
	}
	all.Wait()
	return errs
}

// A setup that makes a topic anew and fills it leaves it filled once, whichever process comes first: what one makes or sends no other deletes.
func TestSetupInAllProcessesIsAsInOne(t *testing.T) {
	for round := range 5 {
		topic := fmt.Sprintf("together-%d", round)
		left := newScript(t).begin()
		left.mustRun(`const conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 });
			await conn.createTopic('` + topic + `'); await conn.producer('` + topic + `').send(['left', 'over']);`)
		h := &hub{count: 3, changed: make(chan struct{})}
		for i, err := range threeProcesses(t, h, lib.ExecutionStatusSetup, `
			const conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 });
			await new Promise((done) => done());
			await conn.deleteTopic('`+topic+`');
			await conn.createTopic('`+topic+`');
			await conn.producer('`+topic+`').produce({ count: 100 });`) {
			if err != nil {
				t.Errorf("process %d: %v", i+1, err)
			}
		}
		left.mustRun(`const c = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 }).consumer('` + topic + `', { group: 'g', start: 'earliest' });
			const all = await c.consume({ idle: '100ms' });
			if (all.received !== 100) throw new Error(all.received + ' of 100');`)
		gone := slices.IndexFunc(h.reached, func(p string) bool { return strings.HasSuffix(p, "delete topic "+topic+": done") })
		if came := len(h.reached[:max(gone, 0)]); came < 3 {
			t.Errorf("it was deleted when %d processes had come: %q", came, h.reached)
		}
	}
}

// A teardown that deletes a topic waits for all processes. Where one never comes, or they cannot talk with each other, nothing is deleted, and an error says so,
// also to scripts that go on where a broker cannot delete.
func TestTeardownDestroysNothingThatOthersUse(t *testing.T) {
	const teardown = `
		const conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 });
		await conn.createTopic('kept');
		await conn.deleteTopic('kept').catch((error) => { if (error.kind !== 'unsupported') throw error; });`
	for name, c := range map[string]struct {
		hub  *hub
		want string
	}{
		"alone": {nil, "in teardown each of the 3 processes of the test would do it, to what the others use"},
		"gone":  {&hub{count: 3, gone: 2, changed: make(chan struct{})}, "all processes of the test are to come to it first: process 3 of 3 never came"},
	} {
		for i, err := range threeProcesses(t, c.hub, lib.ExecutionStatusTeardown, teardown) {
			if c.hub != nil && i == c.hub.gone {
				continue
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: process %d: %v, want %q", name, i+1, err, c.want)
			}
		}
		s := newScript(t).begin()
		s.mustRun(`const conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 }); await conn.producer('kept').send('x'); await conn.deleteTopic('kept');`)
	}
	for i, err := range threeProcesses(t, &hub{count: 3, changed: make(chan struct{})}, lib.ExecutionStatusTeardown, teardown) {
		if err != nil {
			t.Errorf("process %d: %v", i+1, err)
		}
	}
	s := newScript(t).begin()
	if _, err := s.run(`await broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 }).deleteTopic('kept')`); err == nil {
		t.Error(errors.New("it is there all the same"))
	}
}
