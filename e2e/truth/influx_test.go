package truth

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// At 200,000 messages a second InfluxDB gets less than 4,000 points a second, and they add up. Without catching up it is some 1,500.
func TestInfluxDBAtHighRates(t *testing.T) {
	d := harness.NewDatabase(t)
	o, r := harness.RunToOutcome(t, `
const conn = broker.connect('embedded-nats:');
const p = conn.producer('fast');
const c = conn.consumer('fast');
export const options = { summaryTrendStats: ['count'], scenarios: {
  consume: { executor: 'per-vu-iterations', exec: 'consume' },
  produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s' },
} };
export async function produce() { await p.produce({ rate: 200000, duration: '10s' }); }
export async function consume() { await c.consume({ duration: '13s', batch: 500 }); }
`, d.Out())
	if n := d.SameCounts(t, o); n < 10 {
		t.Errorf("%d counters: there should be more\n%v", n, r)
	}
	if sent, _ := d.Sum(t, "broker_sent"); sent != 2_000_000 {
		t.Errorf("sent %.0f of 2000000\n%v", sent, r)
	}
	perSecond, all := map[float64]float64{}, 0.0
	for _, s := range d.Query(t, `SELECT count("value") FROM /.*/ WHERE time > now() - 5m GROUP BY time(1s) fill(none)`) {
		for _, row := range s.Values {
			perSecond[row[0].(float64)] += row[1].(float64)
			all += row[1].(float64)
		}
	}
	most := 0.0
	for _, n := range perSecond {
		most = max(most, n)
	}
	t.Logf("%.0f points in all, at most %.0f of a second", all, most)
	if most == 0 || most >= 4000 {
		t.Errorf("%.0f points of one second", most)
	}
}
