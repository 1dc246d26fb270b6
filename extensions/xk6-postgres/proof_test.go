package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func TestProof(t *testing.T) {
	for _, c := range []struct {
		proof   proof
		confirm driver.Confirm
		how     string
	}{
		{proof{commit: "on", fsync: true}, driver.Accepted, "one server, on disk (synchronous_commit=on)"},
		{proof{commit: "on"}, driver.Accepted, "one server, not on disk: fsync=off"},
		{proof{commit: "off", fsync: true, standbys: "a"}, driver.Accepted, "one server, in memory: synchronous_commit=off, so a crash may take the last moments"},
		{proof{commit: "local", fsync: true, standbys: "*"}, driver.Accepted, "one server, on disk (synchronous_commit=local)"},
		{proof{commit: "on", fsync: true, standbys: "*"}, driver.Replicated, "one server, on disk (synchronous_commit=on), and 1 of its standbys, on disk as far as their fsync is on"},
		{proof{commit: "on", fsync: true, standbys: "s1, s2"}, driver.Replicated, "one server, on disk (synchronous_commit=on), and 1 of its standbys, on disk as far as their fsync is on"},
		{proof{commit: "remote_apply", fsync: true, standbys: "ANY 2 (a, b, c)"}, driver.Replicated, "one server, on disk (synchronous_commit=remote_apply), and 2 of its standbys, applied"},
		{proof{commit: "remote_write", standbys: "3 (a,b,c)"}, driver.Replicated, "one server, not on disk: fsync=off, and 3 of its standbys, in memory"},
		{proof{commit: "on", fsync: true, standbys: "first 2 (a, b)", unlogged: true}, driver.Accepted, "one server, in an unlogged table, which a crash empties"},
	} {
		if got := c.proof.say(); got.Confirm != c.confirm || got.How != c.how {
			t.Errorf("%+v: %+v", c.proof, got)
		}
	}
}

func TestWeaker(t *testing.T) {
	strong := proof{commit: "on", fsync: true, standbys: "ANY 2 (a, b)"}
	for _, c := range []struct {
		now    proof
		weaker bool
	}{
		{strong, false},
		{proof{commit: "on", fsync: true, standbys: "FIRST 3 (a, b, c)"}, false},
		{proof{commit: "on", fsync: true, standbys: "ANY 1 (a, b)"}, true},
		{proof{commit: "on", fsync: true}, true},
		{proof{commit: "on", standbys: "ANY 2 (a, b)"}, true},
		{proof{commit: "on", fsync: true, standbys: "ANY 2 (a, b)", unlogged: true}, true},
	} {
		if got := c.now.weaker(strong); got != c.weaker {
			t.Errorf("%+v: weaker %v", c.now, got)
		}
	}
}

func TestKinds(t *testing.T) {
	for code, want := range map[string]driver.Kind{
		"28P01": driver.Denied, "28000": driver.Denied, "42501": driver.Denied, "42P01": driver.NotFound, "3D000": driver.NotFound,
		"53300": driver.Throttled, "53100": driver.Throttled, "57P03": driver.Disconnected, "57P01": driver.Disconnected, "57014": driver.Timeout,
		"22001": driver.Rejected, "54000": driver.Rejected, "23505": driver.Rejected, "0A000": driver.Unsupported, "08006": driver.Disconnected,
		"40P01": driver.Throttled, "25006": driver.Disconnected,
	} {
		if got := classify(fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("%s is of kind %q, want %q", code, got, want)
		}
	}
	for err, want := range map[error]driver.Kind{
		errSettled: driver.Rejected, errWeaker: driver.Rejected, doubtError("w"): driver.Timeout, pgconn.ErrConnClosed: driver.Disconnected,
		errors.New("what is this"): driver.Unknown,
	} {
		if got := classify(err); got != want {
			t.Errorf("%v is of kind %q, want %q", err, got, want)
		}
	}
}
