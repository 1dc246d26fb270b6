package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// TestLease leaves a message with a consumer that has room for no other until its lease is over: it is the consumer's no more, which gets it again then.
func TestLease(t *testing.T) {
	t.Parallel()
	s := dial(t, serverURL(t), map[string]any{"lease": "300ms"})
	topic := s.topic(t)
	mustSend(t, s.produce(t, topic), "m")
	r := s.consumeUpTo(t, topic, 1)
	held := receive(t, r, 1, false)
	again := receive(t, r, 1, false)
	if held[0].Attempt < 1 || again[0].Attempt <= held[0].Attempt {
		t.Errorf("attempts %d and %d", held[0].Attempt, again[0].Attempt)
	}
	if err := r.Settle(t.Context(), held, driver.Ack); kindOf(t, err) != driver.Rejected {
		t.Errorf("settled after the lease was over: %v, want kind rejected", err)
	}
	if b := s.backlog(t, topic); b.Messages != 1 {
		t.Errorf("a backlog of %d, and one is with the consumer", b.Messages)
	}
	for r.Settle(t.Context(), again, driver.Ack) != nil { // on a slow machine that lease is over, too
		again = receive(t, r, 1, false)
	}
	if b := s.backlog(t, topic); b.Messages != 0 {
		t.Errorf("a backlog of %d after all was settled", b.Messages)
	}
}

// TestRequeueDelay has a lease so long that only the notification can tell the consumer when to look again.
func TestRequeueDelay(t *testing.T) {
	t.Parallel()
	s := dial(t, serverURL(t), map[string]any{"lease": "1h", "requeueDelay": "300ms"})
	topic := s.topic(t)
	r := s.consume(t, topic)
	mustSend(t, s.produce(t, topic), "m")
	begin := time.Now()
	settle(t, r, receive(t, r, 1, false), driver.Requeue)
	again := receive(t, r, 1, false)
	if took := time.Since(begin); took < 290*time.Millisecond {
		t.Errorf("delivered again after %v, and the delay is 300ms", took)
	}
	settle(t, r, again, driver.Ack)
}

func TestDeadLetter(t *testing.T) {
	plain := dial(t, serverURL(t), nil)
	dead := plain.topic(t)
	s := dial(t, serverURL(t), map[string]any{"deadLetter": dead})
	topic := s.topic(t)
	r, undertaker := s.consume(t, topic), plain.consume(t, dead)
	mustSend(t, s.produce(t, topic), "a", "b")
	settle(t, r, receive(t, r, 2, false), driver.Reject)
	got := receive(t, undertaker, 2, false)
	if string(got[0].Body) != "a" || string(got[1].Body) != "b" || got[0].Attempt != 1 {
		t.Errorf("dead letters %q and %q, attempt %d", got[0].Body, got[1].Body, got[0].Attempt)
	}
	if b := s.backlog(t, topic); b.Messages != 0 {
		t.Errorf("a backlog of %d after all was rejected", b.Messages)
	}
}

// TestNeverReceived closes a consumer that has messages waiting in it: they were not delivered.
func TestNeverReceived(t *testing.T) {
	s := dial(t, serverURL(t), nil)
	topic := s.topic(t)
	r := s.consume(t, topic)
	mustSend(t, s.produce(t, topic), "a", "b", "c")
	receive(t, r, 1, false)
	await(t, "all are with the consumer", func() bool { return s.backlog(t, topic).Undelivered == 0 })
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b := s.backlog(t, topic); b.Messages != 3 || b.Undelivered != 2 {
		t.Errorf("a backlog of %+v, want 3 of which 2 were not delivered", b)
	}
	got := receive(t, s.consume(t, topic), 3, false)
	if got[0].Attempt != 2 || got[1].Attempt != 1 {
		t.Errorf("attempts %d and %d, want 2 and 1", got[0].Attempt, got[1].Attempt)
	}
}

// TestRecreated has another program drop the table and create it again.
func TestRecreated(t *testing.T) {
	s := dial(t, serverURL(t), nil)
	topic := s.topic(t)
	p, r := s.produce(t, topic), s.consume(t, topic)
	mustSend(t, p, "before")
	settle(t, r, receive(t, r, 1, false), driver.Ack)
	other := dial(t, serverURL(t), nil)
	other.remove(t, topic)
	for _, err := range send(t, p, "nowhere") {
		if kindOf(t, err) != driver.NotFound {
			t.Errorf("sent to a table that was dropped: %v, want kind not_found", err)
		}
	}
	other.create(t, topic)
	mustSend(t, p, "after")
	if got := receive(t, r, 1, true); string(got[0].Body) != "after" {
		t.Errorf("received %q", got[0].Body)
	}
}

// TestOtherPrograms inserts and reads by SQL.
func TestOtherPrograms(t *testing.T) {
	s := dial(t, serverURL(t), nil)
	topic := s.topic(t)
	table := pgx.Identifier{"public", topic}.Sanitize()
	r, p, c := s.consume(t, topic), s.produce(t, topic), s.client(t)
	if _, err := c.Exec(t.Context(), "INSERT INTO "+table+` (body, headers) VALUES ('\x01ff', '{"a": "text", "n": 42}')`); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "SELECT pg_notify($1, '')", topic); err != nil {
		t.Fatal(err)
	}
	m := receive(t, r, 1, false)[0]
	if string(m.Body) != "\x01\xff" || fmt.Sprintf("%s", m.Headers) != "[{a text} {n 42}]" || m.Key != nil {
		t.Errorf("came as body %q, headers %s, key %q", m.Body, m.Headers, m.Key)
	}
	mustSend(t, p, "ours")
	var body []byte
	var none bool
	row := c.QueryRow(t.Context(), "SELECT body, key IS NULL AND headers IS NULL FROM "+table+" ORDER BY id DESC LIMIT 1")
	if err := row.Scan(&body, &none); err != nil || string(body) != "ours" || !none {
		t.Errorf("the row has %q, and no key and headers: %v, %v", body, none, err)
	}
}

// TestCreateTopic finds tables that are there.
func TestCreateTopic(t *testing.T) {
	s := dial(t, serverURL(t), map[string]any{"unlogged": true, "fillFactor": 90})
	topic := s.topic(t)
	s.create(t, topic)
	info, err := s.Conn.(driver.TopicDescriber).DescribeTopic(t.Context(), topic)
	if err != nil || info.Options["unlogged"] != true || info.Options["fillFactor"] != int64(90) {
		t.Errorf("described as %+v, %v", info, err)
	}

	other := name(t) + "-x"
	if _, err := s.client(t).Exec(t.Context(), "CREATE TABLE "+pgx.Identifier{"public", other}.Sanitize()+" (id bigint, key bytea, body text)"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.remove(t, other) })
	err = s.Conn.(driver.Admin).CreateTopic(t.Context(), driver.TopicSpec{Name: other, Options: values(t, s.a, driver.OnTopic)})
	if kindOf(t, err) != driver.Rejected || !strings.Contains(fmt.Sprint(err), `"body" is of type text, and should be bytea`) {
		t.Errorf("a table that is no topic: %v", err)
	}
	err = s.Conn.(driver.Admin).CreateTopic(t.Context(), driver.TopicSpec{Name: strings.Repeat("x", 64), Options: values(t, s.a, driver.OnTopic)})
	if !errors.As(err, new(*driver.OptionError)) {
		t.Errorf("a name that the server would cut off: %v", err)
	}
}

// TestPartitionedTable has a table that its user partitioned, which is a topic as any other: consumers share all of its partitions. One of them has no log.
func TestPartitionedTable(t *testing.T) {
	s := dial(t, serverURL(t), nil)
	topic := name(t)
	quoted := func(suffix string) string { return pgx.Identifier{"public", topic + suffix}.Sanitize() }
	c, table := s.client(t), quoted("")
	execute(t, c, "CREATE SEQUENCE "+quoted("-id")+"; CREATE TABLE "+table+" (id bigint PRIMARY KEY DEFAULT nextval('"+quoted("-id")+"'), key bytea, body bytea, headers jsonb,"+
		" created timestamptz NOT NULL DEFAULT now(), next_delivery timestamptz NOT NULL DEFAULT now(), attempts integer NOT NULL DEFAULT 0) PARTITION BY HASH (id)")
	t.Cleanup(func() { s.remove(t, topic); execute(t, c, "DROP SEQUENCE "+quoted("-id")) })
	partition := func(i int, how string) {
		execute(t, c, fmt.Sprintf("CREATE %s TABLE %s PARTITION OF %s FOR VALUES WITH (MODULUS 3, REMAINDER %d)", how, quoted(fmt.Sprint("-", i)), table, i))
	}
	partition(0, "")
	partition(1, "")
	prover := func(p driver.Producer) driver.Proof {
		return p.(driver.Prover).Proof(t.Context(), driver.ProducerConfig{Topic: topic}, nil)
	}
	s.create(t, topic)
	if how := prover(s.produce(t, topic)).How; !strings.Contains(how, "synchronous_commit=on") {
		t.Errorf("proves: %s", how)
	}
	partition(2, "UNLOGGED")
	p := s.produce(t, topic)
	if how := prover(p).How; !strings.Contains(how, "in an unlogged table") {
		t.Errorf("proves, with a partition that is unlogged: %s", how)
	}
	bodies := make([]string, 30)
	for i := range bodies {
		bodies[i] = fmt.Sprint(i)
	}
	mustSend(t, p, bodies...)
	a, b := s.consume(t, topic), s.consume(t, topic)
	first, second := receive(t, a, 10, false), receive(t, b, 10, false)
	settle(t, b, second, driver.Requeue)
	settle(t, a, first, driver.Ack)
	came := map[string]int{}
	for _, m := range first {
		came[string(m.Body)]++
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range len(bodies) - len(first) {
		some := receive(t, b, 1, false)
		settle(t, b, some, driver.Ack)
		came[string(some[0].Body)]++
	}
	if len(came) != len(bodies) {
		t.Errorf("%d of %d came", len(came), len(bodies))
	}
	for body, times := range came {
		if times != 1 {
			t.Errorf("%s came %d times", body, times)
		}
	}
	if left := s.backlog(t, topic); left.Messages != 0 {
		t.Errorf("a backlog of %d after all was settled", left.Messages)
	}
}

// TestHeadersThatAreNoText fails those messages alone.
func TestHeadersThatAreNoText(t *testing.T) {
	s := dial(t, serverURL(t), nil)
	topic := s.topic(t)
	p := s.produce(t, topic)
	of := func(name, value string) []driver.Header { return []driver.Header{{Name: name, Value: []byte(value)}} }
	b := driver.Batch{
		{Headers: of("a", "text")}, {Headers: of("a", "\xff")}, {Headers: of("a", "\x00")}, {Headers: append(of("a", "1"), of("a", "2")...)}, {Headers: of("ü", "é\u2028")},
	}
	kinds := make(chan string, len(b))
	p.Send(t.Context(), b, func(i int, err error) { kinds <- fmt.Sprint(i, kindOf(t, err)) })
	got := map[string]bool{}
	for range b {
		got[<-kinds] = true
	}
	for i, want := range []driver.Kind{"", driver.Rejected, driver.Rejected, driver.Rejected, ""} {
		if !got[fmt.Sprint(i, want)] {
			t.Errorf("message %d: want kind %q of %v", i, want, got)
		}
	}
	m := receive(t, s.consume(t, topic), 2, false)
	if string(m[1].Headers[0].Value) != "é\u2028" {
		t.Errorf("came as %q", m[1].Headers)
	}
}
