package k6

import (
	"errors"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// A header of that name would be read as the trace stamp, and the message be counted as corrupted
// and as lost.
func TestTheNameOfTheStampIsRefused(t *testing.T) {
	s := withBytes(t)
	for _, name := range []string{"X-K6-Stamp", "x-k6-stamp", "X-K6-STAMP"} {
		for _, call := range []string{"p.send({ body: 'x', headers })", "p.send(['y', { body: 'x', headers }])", "p.request({ body: 'x', headers })"} {
			_, err := s.run("const headers = { a: 'b', '" + name + "': 'c' }; await " + call)
			if want := `header "` + name + `": the producer adds the trace stamp under this name: choose another`; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q", call, err, want)
			}
		}
	}
	if _, err := s.run("await p.send({ body: 'x', headers: { 'X-K6-Stamp-2': 'y' } })"); err != nil {
		t.Error(err)
	}
}

// What a script forwards keeps its headers, without the stamp of its way so far, be that one or
// not.
func TestForwardedHeadersLeaveTheStampBehind(t *testing.T) {
	s := withBytes(t)
	stamp := driver.Header{Name: engine.StampHeader, Value: []byte("damaged")}
	address, err := driver.ParseURL("memory://127.0.0.1:7", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := address.Open(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	p, err := conn.NewProducer(t.Context(), driver.ProducerConfig{Topic: t.Name(), Window: 1})
	if err != nil {
		t.Fatal(err)
	}
	p.Send(t.Context(), driver.Batch{{Body: []byte("x"), Headers: []driver.Header{{Name: "a", Value: []byte("b")}, stamp}}}, func(_ int, err error) {
		if err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(p.Close(t.Context()), conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	got := s.mustRun(`
		await p.send({ body: 'y', headers: { a: 'b' } });
		let seen = [];
		const next = async () => {
			const [m] = await c.receive();
			seen.push(m.text() + JSON.stringify(m.headers));
			await c.ack(m);
			return m;
		};
		for (const m of [await next(), await next()]) {
			await p.send({ body: m.body, headers: m.headers });
			await p.send(m);
		}
		for (let i = 0; i < 4; i++) await next();
		return seen.sort().join(' ')`)
	const x, y = `x{"a":"b"}`, `y{"a":"b"}`
	if want := strings.Join([]string{x, x, x, y, y, y}, " "); got != want {
		t.Errorf("%v; want %s", got, want)
	}
	if accounts := result.New(s.module.run.collector.Measured()).Topics[0].Counts; accounts["unstamped"] != 1 || accounts["corrupted"] != 0 {
		t.Errorf("%v; want only the first message without a stamp", accounts)
	}
}
