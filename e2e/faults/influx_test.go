package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// An InfluxDB that is not there, goes away, or does not answer for a while is none of the test's business.
func TestALostInfluxDBDoesNotDisturbTheTest(t *testing.T) {
	t.Parallel()
	d := harness.NewDatabase(t)
	for _, c := range []struct {
		name    string
		disturb func(p *proxy.Proxy)
		holds   func(stored, count float64) bool
	}{
		{"not there", func(p *proxy.Proxy) { p.Refuse(true) }, func(stored, _ float64) bool { return stored == 0 }},
		{"goes away", func(p *proxy.Proxy) {
			time.AfterFunc(4*time.Second, func() { p.Refuse(true); p.Cut() })
		}, func(stored, count float64) bool { return stored > 0 && stored < count }},
		{"does not answer for a while", func(p *proxy.Proxy) {
			time.AfterFunc(4*time.Second, p.Freeze)
			time.AfterFunc(12*time.Second, p.Thaw)
		}, func(stored, count float64) bool { return stored == count }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := proxy.Listen(d.URL(t).Host)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close() //nolint:errcheck // the test is over
			own := harness.NewDatabase(t)
			c.disturb(p)
			o, r := harness.RunToOutcome(t, `
const conn = broker.connect('embedded-nats:');
const p = conn.producer('quiet'), c = conn.consumer('quiet');
export const options = {
  scenarios: {
    consume: { executor: 'per-vu-iterations', exec: 'consume' },
    produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s' },
  },
  thresholds: { broker_lost: ['count==0'] },
};
export async function produce() { await p.produce({ rate: 1000, duration: '6s' }); }
export async function consume() { await c.consume({ duration: '8s' }); }
`, strings.Replace(own.Out(), d.URL(t).Host, p.Addr(), 1))
			count := o.Metrics["broker_received"].Values["count"]
			if r.Code != 0 || count != 6000 {
				t.Errorf("received %.0f of 6000\n%v", count, r)
			}
			stored, _ := own.Sum(t, "broker_received")
			if !c.holds(stored, count) {
				t.Errorf("InfluxDB holds %.0f of %.0f\n%v", stored, count, r)
			}
		})
	}
}
