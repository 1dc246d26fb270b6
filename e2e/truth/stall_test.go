package truth

import (
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/stall"
)

// A broker silent for 1 s of 10: the ways that keep every arrival report what arithmetic says; k6's own executor with too few VUs drops the very
// arrivals that waited, under-reports, and is told so.
func TestAStallByEveryWayToDriveLoad(t *testing.T) {
	url := harness.URL(t, "BROKER_URL_NATS_JETSTREAM")
	theory := stall.Theory()
	for i, way := range stall.Ways() {
		t.Run(way.Name, func(t *testing.T) {
			row, err := stall.Run(harness.Binary, url, way)
			if err != nil {
				t.Fatal(err)
			}
			tooFewVUs := i == len(stall.Ways())-1
			if tooFewVUs {
				if row.Dropped == 0 || row.Valid {
					t.Errorf("dropped %d, valid %v: it should have dropped and said so", row.Dropped, row.Valid)
				}
				if got, want := row.Latency.Quantile(0.95), theory.Latency.Quantile(0.95); got > want/2 {
					t.Errorf("p95 is %v of %v: it was to under-report", time.Duration(got), time.Duration(want))
				}
				return
			}
			if row.Dropped != 0 {
				t.Fatalf("k6 dropped %d arrivals with VUs to spare: the machine is too busy for it", row.Dropped)
			}
			for _, q := range []float64{0.95, 0.99, 0.999} {
				got, want := time.Duration(row.Latency.Quantile(q)), time.Duration(theory.Latency.Quantile(q))
				if got < want-300*time.Millisecond || got > want+time.Second {
					t.Errorf("p%v is %v, arithmetic says %v", 100*q, got, want)
				}
			}
		})
	}
}
