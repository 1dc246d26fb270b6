package faults

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A server that stands still for 2 s of a run: each message that is due meanwhile waits until it goes on, evenly from 0 to 2 s.
// Both latencies show it, though nothing was sent late; the median knows nothing of it. No other test may run beside it and take the
// time of the CPUs.
func TestAPausedBrokerShowsInTheLatencies(t *testing.T) {
	names := brokers(t, func(name string) bool {
		switch name {
		case "influxdb": // is a store
		case "pulsar", "rocketmq", "elasticmq": // take seconds after their start, and after a pause, to keep up with the load
		default:
			return !strings.Contains(name, "-") // a variant pauses as the plain one does
		}
		return false
	})
	p := start(t, pausePorts, names...)
	together := make(chan struct{}, 2) // more of them at once want more than two CPUs
	for _, name := range names {
		url := p.keeper(name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			together <- struct{}{}
			defer func() { <-together }()
			var least, most atomic.Int64 // how long it stood still
			pulls := harness.Levers(t, map[string]func() error{"fault": func() error {
				begin := time.Now()
				if err := p.try("pause", name); err != nil {
					return err
				}
				paused := time.Now()
				time.Sleep(2 * time.Second)
				least.Store(int64(time.Since(paused)))
				err := p.try("resume", name)
				most.Store(int64(time.Since(begin)))
				return err
			}})
			o, r := harness.RunToOutcome(t, harness.Pull+`
const conn = broker.connect(__ENV.BROKER_URL);
const p = conn.producer('paused', { maxInFlight: 10000 });
const c = conn.consumer('paused', { ...(conn.features.groups ? { group: 'workers' } : {}), prefetch: 10000 });
export async function setup() { await conn.createTopic('paused'); }
`+steady, "SECONDS=10", "BROKER_URL="+url, pulls)
			b := addsUp(t, o, r, 5000)
			b.nothingLost(t, r)
			if b.failed != 0 {
				t.Errorf("%d failed: a pause is no failure\n%v", b.failed, r)
			}
			for _, trend := range []string{"publish_latency", "e2e_latency"} {
				waitsEvenly(t, o.Result.Topics[0].Trends[trend], trend, time.Duration(least.Load()), time.Duration(most.Load()), 10*time.Second)
			}
		})
	}
}

// keeper is the URL of the first driver of a broker that keeps what nobody has received.
func (p private) keeper(name string) string {
	p.t.Helper()
	for _, url := range p.urls[name] {
		if a, err := driver.ParseURL(url, nil); err == nil && a.Driver.Features.Deliver == driver.AtLeastOnce {
			return url
		}
	}
	p.t.Fatalf("no driver of %s keeps messages: %v", name, p.urls[name])
	return ""
}

// waitsEvenly checks a histogram of latencies against a pause of from least to most within a run: in the share of the messages that were due
// during the pause, the slowest waited for all of it, those in the middle for half of it.
func waitsEvenly(t *testing.T, histogram *summary.Histogram, trend string, least, most, run time.Duration) {
	t.Helper()
	share, ms := least.Seconds()/run.Seconds(), float64(least.Milliseconds())
	longer := float64((most - least).Milliseconds())
	for _, part := range []float64{0, 0.25, 0.5, 0.75} { // of the pause, from its beginning
		got, want := histogram.Milliseconds(1-share*part), ms*(1-part)
		t.Logf("%s p%.1f is %.0f ms, theory says %.0f, or up to %.0f more", trend, 100*(1-share*part), got, want, longer)
		if got < 0.8*want-100 || got > want+longer+1000 {
			t.Errorf("%s p%.1f is %.0f ms, theory says %.0f, or up to %.0f more", trend, 100*(1-share*part), got, want, longer)
		}
	}
	if got := histogram.Milliseconds(0.5); got > ms/4 {
		t.Errorf("half of the messages were not touched by the pause, yet the median of %s is %.0f ms", trend, got)
	}
}
