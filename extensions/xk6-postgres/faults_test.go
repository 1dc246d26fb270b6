package postgres_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// between puts a proxy in front of the server.
func between(t *testing.T) (throughIt string, p *proxy.Proxy) {
	t.Helper()
	u, err := url.Parse(serverURL(t))
	if err != nil {
		t.Fatal(err)
	}
	if p, err = proxy.Listen(u.Host); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	u.Host = p.Addr()
	return u.String(), p
}

// TestServerAway sends while nobody answers: each message fails, also those that come when the connection is known to be gone.
func TestServerAway(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	far, p := between(t)
	s := dial(t, serverURL(t), nil)
	topic := s.topic(t)
	producer := dial(t, far, nil).produce(t, topic)
	mustSend(t, producer, "before")
	p.Refuse(true)
	p.Cut()
	for range 3 {
		for _, err := range send(t, producer, "away", "away") {
			if kindOf(t, err) != driver.Disconnected {
				t.Errorf("sent to a server that is away: %v, want kind disconnected", err)
			}
		}
	}
	p.Refuse(false)
	mustSend(t, producer, "after")
	if b := s.backlog(t, topic); b.Messages != 2 {
		t.Errorf("%d messages, and two were confirmed", b.Messages)
	}
}

// TestSettleThatFails has no room for a second message while the first is held, and the first cannot be settled: that must not hold up the consumer for ever.
func TestSettleThatFails(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	far, p := between(t)
	s := dial(t, serverURL(t), nil)
	topic := s.topic(t)
	producer := s.produce(t, topic)
	r := dial(t, far, map[string]any{"lease": "1h"}).consumeUpTo(t, topic, 1)
	mustSend(t, producer, "first")
	first := receive(t, r, 1, false)
	p.Refuse(true)
	p.Cut()
	if err := r.Settle(t.Context(), first, driver.Ack); kindOf(t, err) != driver.Disconnected {
		t.Errorf("settled at a server that is away: %v, want kind disconnected", err)
	}
	p.Refuse(false)
	mustSend(t, producer, "second")
	if second := receive(t, r, 1, true); string(second[0].Body) != "second" {
		t.Errorf("received %q", second[0].Body)
	}
	settle(t, r, first, driver.Ack) // again
	if b := s.backlog(t, topic); b.Messages != 1 {
		t.Errorf("a backlog of %d", b.Messages)
	}
}

// TestFirstQuestionAfterABreak asks over a connection that broke while nobody used it.
func TestFirstQuestionAfterABreak(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	far, p := between(t)
	s := dial(t, far, nil)
	topic := s.topic(t)
	p.Cut()
	s.backlog(t, topic)
}

// TestProvesLess makes the table again as one that no crash survives: what the producer then sends would be confirmed for less than it proved.
func TestProvesLess(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	far, p := between(t)
	s := dial(t, serverURL(t), nil)
	topic := s.topic(t)
	producer := dial(t, far, nil).produce(t, topic)
	mustSend(t, producer, "before")
	s.remove(t, topic)
	dial(t, serverURL(t), map[string]any{"unlogged": true}).create(t, topic)
	p.Cut()
	await(t, "the producer connects again, and refuses", func() bool { return kindOf(t, send(t, producer, "less")[0]) == driver.Rejected })
	proof := producer.(driver.Prover).Proof(context.Background(), driver.ProducerConfig{Topic: topic}, nil)
	if proof.Confirm != driver.Accepted || proof.How != "one server, in an unlogged table, which a crash empties" {
		t.Errorf("proof %+v", proof)
	}
	mustSend(t, producer, "now that it was asked again")
}

// TestWarningsThatTheRoleDoesNotWant has the server warn of a commit, as it does of one that it gave up waiting for standbys for, with a role to which no
// warnings are sent.
func TestWarningsThatTheRoleDoesNotWant(t *testing.T) {
	s := dial(t, serverURL(t), nil)
	topic, c := s.topic(t), s.client(t)
	u, err := url.Parse(serverURL(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("deaf")
	trigger(t, s, topic, "RAISE WARNING 'not everybody has it'; RETURN coalesce(NEW, OLD)", "INSERT OR DELETE")
	execute(t, c, "DROP ROLE IF EXISTS deaf; CREATE ROLE deaf SUPERUSER LOGIN; ALTER ROLE deaf SET client_min_messages = error")
	t.Cleanup(func() { execute(t, c, "DROP ROLE deaf") })
	deaf := dial(t, u.String(), nil)
	if err := send(t, deaf.produce(t, topic), "doubtful")[0]; kindOf(t, err) != driver.Timeout {
		t.Errorf("committed with a warning: %v, want kind timeout", err)
	}
	r := deaf.consume(t, topic)
	if err := r.Settle(t.Context(), receive(t, r, 1, false), driver.Ack); kindOf(t, err) != driver.Timeout {
		t.Errorf("settled with a warning: %v, want kind timeout", err)
	}
}

// TestTriggerThatDropsMessages has a trigger leave out rows: of those of one transaction nobody knows which.
func TestTriggerThatDropsMessages(t *testing.T) {
	s := dial(t, serverURL(t), nil)
	topic := s.topic(t)
	trigger(t, s, topic, `IF NEW.body = '\x6e6f' THEN RETURN NULL; END IF; RETURN NEW`, "INSERT")
	p := s.produce(t, topic)
	mustSend(t, p, "yes", "yes")
	for _, bodies := range [][]string{{"no"}, {"yes", "no", "yes"}} {
		for i, err := range send(t, p, bodies...) {
			if kindOf(t, err) != driver.Rejected {
				t.Errorf("message %d of %v: %v, want kind rejected", i, bodies, err)
			}
		}
	}
	mustSend(t, p, "yes")
}

// trigger has the server run the body of a function before each row.
func trigger(t *testing.T, s server, topic, body, events string) {
	t.Helper()
	c, table, function := s.client(t), pgx.Identifier{"public", topic}.Sanitize(), pgx.Identifier{"public", topic + "-f"}.Sanitize()
	execute(t, c, "CREATE FUNCTION "+function+"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+body+"; END $$;"+
		"CREATE TRIGGER t BEFORE "+events+" ON "+table+" FOR EACH ROW EXECUTE FUNCTION "+function+"()")
	t.Cleanup(func() { execute(t, c, "DROP FUNCTION "+function+" CASCADE") })
}

func execute(t *testing.T, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Error(err)
	}
}
