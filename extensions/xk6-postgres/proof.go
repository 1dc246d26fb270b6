package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// errWeaker is the error of messages whose confirmation would prove less than when the producer
// opened.
var errWeaker = errors.New(
	"the server, or the table, does not keep what a confirmation proved when the producer opened",
)

// proof is the state that decides what a commit proves.
type proof struct {
	commit   string // synchronous_commit
	fsync    bool
	unlogged bool
	standbys string // synchronous_standby_names
	server   string // which one was asked: when it started
}

// ask reads the state. A missing topic counts as logged, a partly unlogged one as unlogged.
func (p *proof) ask(ctx context.Context, s *session, t topic) error {
	const sql = `SELECT pg_postmaster_start_time()::text, current_setting('fsync')::boolean, current_setting('synchronous_standby_names'),
		EXISTS (SELECT FROM pg_class WHERE relpersistence = 'u' AND (oid = to_regclass($1) OR oid IN (SELECT relid FROM pg_partition_tree(to_regclass($1)))))`
	return s.QueryRow(ctx, sql, t.table).Scan(&p.server, &p.fsync, &p.standbys, &p.unlogged)
}

// first finds the number of standbys in "ANY 2 (a, b)" and "2 (a, b)". A plain list means one.
var first = regexp.MustCompile(`(?i)^\s*(?:(?:ANY|FIRST)\s+)?(\d+)\s*\(`)

// copies is how many standbys a commit waits for.
func (p *proof) copies() int {
	if p.standbys == "" || p.unlogged || p.commit == "off" || p.commit == "local" {
		return 0
	}
	if m := first.FindStringSubmatch(p.standbys); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 1
}

// onDisk reports whether a commit is on the server's disk.
func (p *proof) onDisk() bool { return p.fsync && !p.unlogged && p.commit != "off" }

// weaker reports whether a commit proves less than another.
func (p *proof) weaker(than proof) bool {
	return p.copies() < than.copies() || !p.onDisk() && than.onDisk() || p.unlogged && !than.unlogged
}

func (p *proof) say() driver.Proof {
	var how string
	switch {
	case p.unlogged:
		how = "one server, in an unlogged table, which a crash empties"
	case p.commit == "off":
		how = "one server, in memory: synchronous_commit=off, so a crash may take the last moments"
	case !p.fsync:
		how = "one server, not on disk: fsync=off"
	default:
		how = "one server, on disk (synchronous_commit=" + p.commit + ")"
	}
	n := p.copies()
	if n == 0 {
		return driver.Proof{Confirm: driver.Accepted, How: how}
	}
	// A standby reports a flush also if its own fsync is off.
	where := map[string]string{"on": "on disk as far as their fsync is on", "remote_write": "in memory", "remote_apply": "applied"}[p.commit]
	return driver.Proof{Confirm: driver.Replicated, How: fmt.Sprintf("%s, and %d of its standbys, %s", how, n, where)}
}

// prepare prepares a session of the producer. A later session must not prove less than the first.
func (p *producer) prepare(ctx context.Context, s *session, first bool) error {
	p.proving.Lock()
	defer p.proving.Unlock()
	now := proof{commit: p.proven.commit}
	if _, err := s.Exec(ctx, "SELECT set_config('synchronous_commit', $1, false)", now.commit); err != nil {
		return err
	}
	for name, sql := range insertions {
		if _, err := s.PgConn().Prepare(ctx, name, fmt.Sprintf(sql, p.topic.table), nil); err != nil {
			return err
		}
	}
	if _, err := s.PgConn().Prepare(ctx, "notify", notification, nil); err != nil {
		return err
	}
	if err := now.ask(ctx, s, p.topic); err != nil {
		return err
	}
	if !first && now.weaker(p.proven) {
		return errWeaker
	}
	if first {
		p.proven = now
	}
	p.proven.server = now.server
	return nil
}

// Proof implements [driver.Prover]. It asks again, because the topic and the settings may have
// changed. The answer of another server is ignored: the producer's own sessions check it when they
// connect.
func (p *producer) Proof(ctx context.Context, _ driver.ProducerConfig, _ *driver.TopicSpec) driver.Proof {
	p.proving.Lock()
	now := p.proven
	p.proving.Unlock()
	err := p.conn.line.do(ctx, func(ctx context.Context, s *session) error { return now.ask(ctx, s, p.topic) })
	p.proving.Lock()
	defer p.proving.Unlock()
	if err == nil && now.server == p.proven.server {
		p.proven = now
	}
	return p.proven.say()
}
