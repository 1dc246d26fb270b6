package k6

import (
	"errors"
	"strings"
	"testing"

	"github.com/grafana/sobek"
)

// A panic in what a script called, or in what goes on for its promise, is an error of the script: its test goes on.
func TestAPanicIsAnErrorOfTheScript(t *testing.T) {
	alreadyBroken.Clear()
	for _, c := range []struct{ name, call string }{
		{"broken-open", "broker.connect('broken-open://h').producer('t').send('x')"},
		{"producer", "broker.connect('broken://h').producer('producer').send('x')"},
		{"consumer", "broker.connect('broken://h').consumer('consumer').receive()"},
		{"createTopic", "broker.connect('broken://h').createTopic('createTopic')"},
		{"backlog", "broker.connect('broken://h').backlog('backlog')"},
		{"send", "(globalThis.p ??= broker.connect('broken://h').producer('send')).ready().then(() => p.send('x'))"},
		{"receive", "broker.connect('broken://h').consumer('receive').receive()"},
		{"ack", "(async () => { const c = broker.connect('broken://h').consumer('ack'); await c.ack(await c.receive()); })()"},
	} {
		s := newScript(t).begin()
		_, err := s.run("await " + c.call)
		verb := c.name
		switch c.name {
		case "broken-open", "producer":
			verb = "send"
		case "consumer":
			verb = "receive"
		}
		want := "Error: broker: internal error in " + verb + ": a bug in " + c.name + ", please report it"
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v; want %q", c.name, err, want)
		}
		if log := s.says(); !strings.Contains(log, "a bug in "+c.name) || !strings.Contains(log, "broken.panicIn") {
			t.Errorf("%s: nothing of the stack was logged: %s", c.name, log)
		}
		if _, err := s.run("await " + c.call); err != nil { // it panics only once
			t.Errorf("%s: nothing goes any more: %v", c.name, err)
		}
	}
}

// What is settled stays so when its sender panics afterwards.
func TestAPanicAfterTheFactChangesNothing(t *testing.T) {
	alreadyBroken.Clear()
	s := newScript(t).begin()
	s.mustRun(`
		const p = broker.connect('broken://h').producer('sent');
		await p.ready();
		if (typeof (await p.send('x')).sequence !== 'number') throw new Error('no receipt');
		await p.send('x');`)
	if log := s.says(); !strings.Contains(log, "internal error in send: a bug in sent") {
		t.Errorf("%q was logged", log)
	}
}

func TestAPanicInACallIsThrown(t *testing.T) {
	s := newScript(t)
	in, ok := s.module.NewModuleInstance(s).(*instance)
	if !ok {
		t.Fatal("not an instance")
	}
	lend := func(name string, f any) { s.set(name, in.guarded(name, f)) }
	var none *message
	lend("plain", func(n int) int { return n + none.i })
	lend("direct", func(sobek.FunctionCall) sobek.Value { return s.rt.ToValue(none.i) })
	lend("indexed", func(list []int) int { return list[3] })
	lend("fails", func() (int, error) { return 0, errors.New("an error") })
	lend("throws", func(f sobek.Callable) (sobek.Value, error) { return f(nil) })
	lend("works", func(a, b int) int { return a + b })
	for call, want := range map[string]string{
		"plain(1)":       "GoError: broker: internal error in plain: runtime error: invalid memory address or nil pointer dereference, please report it",
		"direct()":       "GoError: broker: internal error in direct: runtime error: invalid memory address or nil pointer dereference, please report it",
		"indexed([1])":   "GoError: broker: internal error in indexed: runtime error: index out of range [3] with length 1, please report it",
		"fails()":        "GoError: an error",
		"fails.name":     "fails",
		"direct.name":    "direct",
		"works(1, 2)":    "3",
		"broker.connect": "function connect() { [native code] }",
		"throws(() => { throw new RangeError('mine') })":        "RangeError: mine",
		"throws(() => plain(1))":                                "GoError: broker: internal error in plain: runtime error: invalid memory address or nil pointer dereference, please report it",
		"throws(() => { try { plain(1) } catch { return 7 } })": "7",
		"plain(Symbol())":                                       "TypeError: Cannot convert a Symbol",
	} {
		got := s.mustRun("try { return String(" + call + ") } catch (e) { return String(e) }")
		if text, _ := got.(string); !strings.HasPrefix(text, want) {
			t.Errorf("%s: %v; want %s", call, got, want)
		}
	}
	if n := strings.Count(s.says(), "internal error"); n != 1 {
		t.Errorf("%d stacks were logged, want the first only", n)
	}
	for _, cause := range []any{&sobek.InterruptedError{}, &sobek.Exception{}, &sobek.StackOverflowError{}, s.rt.NewObject(), s.rt.ToValue("x")} {
		if !thrown(cause) {
			t.Errorf("%T would be taken for a mistake", cause)
		}
	}
}
