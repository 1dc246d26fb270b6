package main

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"
)

// A server that stands still for 2 s of a run: each message that is due meanwhile waits until it goes on, evenly from 0 to 2 s.
// Both latencies show it, though nothing was sent late; the median knows nothing of it. No other test may run beside it and take the
// time of the CPUs.
func TestAPausedBrokerShowsInTheLatencies(t *testing.T) {
	p := start(t, pausePorts, "kafka", "rabbitmq", "redis", "nats")
	for _, c := range []struct{ name, driver string }{
		{"kafka", "kafka"}, {"rabbitmq", "rabbitmq"}, {"redis", "redis-streams"}, {"nats", "nats-jetstream"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var least, most atomic.Int64 // how long it stood still
			pulls := levers(t, map[string]func() error{"fault": func() error {
				begin := time.Now()
				if err := p.try("pause", c.name); err != nil {
					return err
				}
				paused := time.Now()
				time.Sleep(2 * time.Second)
				least.Store(int64(time.Since(paused)))
				err := p.try("resume", c.name)
				most.Store(int64(time.Since(begin)))
				return err
			}})
			o, r := runToOutcome(t, pull+`
const conn = broker.connect(__ENV.BROKER_URL);
const p = conn.producer('paused', { maxInFlight: 10000 });
const c = conn.consumer('paused', { group: 'workers', prefetch: 10000 });
export async function setup() { await conn.createTopic('paused'); }
`+steady, "SECONDS=10", "BROKER_URL="+p.broker("url", c.name, c.driver), pulls)
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

// waitsEvenly checks a histogram of latencies against a pause of from least to most within a run: in the share of the messages that were due
// during the pause, the slowest waited for all of it, those in the middle for half of it.
func waitsEvenly(t *testing.T, histogram json.RawMessage, trend string, least, most, run time.Duration) {
	t.Helper()
	share, ms := least.Seconds()/run.Seconds(), float64(least.Milliseconds())
	longer := float64((most - least).Milliseconds())
	for _, part := range []float64{0, 0.25, 0.5, 0.75} { // of the pause, from its beginning
		got, want := quantileOf(t, histogram, 1-share*part), ms*(1-part)
		t.Logf("%s p%.1f is %.0f ms, theory says %.0f, or up to %.0f more", trend, 100*(1-share*part), got, want, longer)
		if got < 0.8*want-100 || got > want+longer+1000 {
			t.Errorf("%s p%.1f is %.0f ms, theory says %.0f, or up to %.0f more", trend, 100*(1-share*part), got, want, longer)
		}
	}
	if got := quantileOf(t, histogram, 0.5); got > ms/4 {
		t.Errorf("half of the messages were not touched by the pause, yet the median of %s is %.0f ms", trend, got)
	}
}
