package truth

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// k6 keeps every sample of a trend, so of a test that may last for a day it gets fewer each second.
func TestALongTestGivesK6FewerSamples(t *testing.T) {
	path := harness.Script(t, `import broker from 'k6/x/broker';
const conn = broker.connect('embedded:');
const p = conn.producer('t');
export const options = { scenarios: { all: { executor: 'per-vu-iterations', maxDuration: __ENV.LONGEST } } };
export async function setup() { await conn.createTopic('t'); }
export default async function () { await p.produce({ rate: 1000, duration: '3s' }); }
`)
	samples := map[string]int{}
	for _, longest := range []string{"10m", "24h"} {
		csv := filepath.Join(t.TempDir(), "samples.csv")
		if r := harness.K6(t, []string{"LONGEST=" + longest}, "run", "--quiet", "--out", "csv="+csv, path); r.Code != 0 {
			t.Fatal(r)
		}
		samples[longest] = strings.Count("\n"+string(harness.Read(t, csv)), "\nbroker_publish_latency,")
	}
	if samples["10m"] < 250 || samples["24h"] > samples["10m"]/20 || samples["24h"] == 0 {
		t.Errorf("%v", samples)
	}
}
