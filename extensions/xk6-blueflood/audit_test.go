package blueflood_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// audited closes the producer and asks what became of its messages.
func audited(t *testing.T, p driver.Producer) driver.Audit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	audit, err := p.(driver.Auditor).Audit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return audit
}

// TestAuditFindsWhatIsLost has a store that is away for a while: what is of known metrics is confirmed then, and lost.
func TestAuditFindsWhatIsLost(t *testing.T) {
	f := newFake(t)
	p, _ := producer(t, f.url, map[string]any{"metrics": 250})
	failed := 0
	round := func(n int) {
		t.Helper()
		for _, err := range send(t, p, numbers(n)) {
			if err != nil {
				failed++
			}
		}
	}
	round(200)
	f.set(func() { f.away = true })
	round(100) // of which 50 are of metrics that nobody knows: refused
	if failed != 100 {
		t.Fatalf("%d failed", failed)
	}
	round(70) // known ones
	f.set(func() { f.away = false })
	round(30)
	if failed != 100 {
		t.Fatalf("%d failed", failed)
	}
	if got := audited(t, p); got != (driver.Audit{Confirmed: 300, Missing: 70}) {
		t.Errorf("%+v", got)
	}
}

// TestAuditTellsWhoseThePointsAre has a server that stores points and says that it has not in time: they do not stand for others that are lost.
func TestAuditTellsWhoseThePointsAre(t *testing.T) {
	f := newFake(t)
	p, _ := producer(t, f.url, map[string]any{"metrics": 1})
	requests := 0
	f.ingest = func(w http.ResponseWriter, points []sentPoint) bool {
		switch requests++; requests {
		case 1: // is confirmed, and lost
			return true
		case 2: // is stored
			for _, p := range points {
				f.store(p)
			}
			refuse(w, http.StatusAccepted, `{"message":"Timed out persisting metrics"}`)
			return true
		}
		return false
	}
	send(t, p, numbers(10))
	if err := send(t, p, numbers(10))[0]; kindOf(t, err) != driver.Timeout {
		t.Fatal(err)
	}
	if got := audited(t, p); got != (driver.Audit{Confirmed: 10, Missing: 10}) {
		t.Errorf("%+v: the ten that are there were not confirmed", got)
	}
}

// TestAuditOfAStoreThatIsAway says that nobody knows, rather than that all is lost.
func TestAuditOfAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p, _ := producer(t, f.url, nil)
	send(t, p, numbers(10))
	f.set(func() { f.away = true })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := p.(driver.Auditor).Audit(ctx)
	if err == nil || !strings.Contains(err.Error(), "Persisted failed") || got.Confirmed != 10 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAuditInParts has more points of a metric than are asked for at a time.
func TestAuditInParts(t *testing.T) {
	f := newFake(t)
	p, _ := producer(t, f.url, map[string]any{"metrics": 2, "maxRequest": "1GB"})
	lose := 0
	f.ingest = func(_ http.ResponseWriter, points []sentPoint) bool {
		for i, p := range points {
			if len(points) > 1 && i%1000 == 7 {
				lose++
			} else {
				f.store(p)
			}
		}
		return true
	}
	for range 3 {
		send(t, p, numbers(10_000))
	}
	if got := audited(t, p); got != (driver.Audit{Confirmed: 30_000, Missing: uint64(lose)}) || lose != 30 {
		t.Errorf("%+v, and lost are %d", got, lose)
	}
}

// TestAuditOfNothing asks nobody.
func TestAuditOfNothing(t *testing.T) {
	f := newFake(t)
	p, _ := producer(t, f.url, nil)
	if got := audited(t, p); got != (driver.Audit{}) || len(f.requests) != 0 {
		t.Errorf("%+v, %d requests", got, len(f.requests))
	}
	p, _ = producer(t, f.url, map[string]any{"readBack": false})
	send(t, p, numbers(10))
	if got := audited(t, p); got != (driver.Audit{}) || len(f.requests) != 1 {
		t.Errorf("without readBack: %+v, %d requests", got, len(f.requests))
	}
}

// TestAuditOfWhatHasExpired does not call it lost.
func TestAuditOfWhatHasExpired(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p, _ := producer(t, f.url, map[string]any{"ttl": "1s"})
	send(t, p, numbers(1))
	// A point's time has whole milliseconds, and it is kept for a second from then on.
	time.Sleep(time.Until(time.UnixMilli(f.requests[0][0].CollectionTime).Add(1100 * time.Millisecond)))
	got, err := p.(driver.Auditor).Audit(t.Context())
	if kindOf(t, err) != driver.Rejected || !strings.Contains(fmt.Sprint(err), `option "ttl"`) || got.Confirmed != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
