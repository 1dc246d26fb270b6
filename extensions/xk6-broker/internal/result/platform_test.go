package result

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

func TestAdviceNamesTheCause(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		p    *Platform
		want string
	}{
		{nil, "less busy"},
		// GOMAXPROCS is 1 of 2 CPUs: k6 may use half of what the machine has.
		{&Platform{Process: v(0.67), Host: v(0.76), Others: v(0.43)}, "^other processes used 43 % of this machine's CPUs, k6 67 % of its own: run"},
		{&Platform{Process: v(0.9), Host: v(0.5), Others: v(0.05)}, "^k6 used 90 % of its CPUs"},
		{&Platform{}, "does not tell: .*debugger"},
		{&Platform{Process: v(0.07)}, "does not tell: .*debugger"},
		{&Platform{Process: v(0.05), Host: v(0.9), Others: v(0.85)}, "other processes used 85 %"},
		{&Platform{Process: v(0.85), Host: v(0.9), Others: v(0.05)}, "k6 used 85 %"},
		{&Platform{Process: v(0.05), Host: v(0.09), Others: v(0.04), Steal: v(0.3)}, "^the hypervisor gave 30 % of the CPUs to other machines: use one that shares none$"},
		{&Platform{Process: v(0.05), Host: v(0.2), Others: v(0.15), Steal: v(0.3)}, "^the hypervisor gave 30 % .*; other processes used 15 %"},
		{&Platform{Process: v(0.11), Host: v(1), Others: v(0.89), Steal: v(0.055)}, "^other processes used 89 % .*; the hypervisor gave 5.5 %"},
		{&Platform{Process: v(0.11), Host: v(1), Others: v(0.89), Steal: v(0.04)}, "^other processes used 89 % of this machine's CPUs, k6 11 % of its own: run the generator apart from them$"},
		{&Platform{Process: v(0.85), Host: v(0.95), Others: v(0.1), Steal: v(0.01)}, "^k6 used 85 %"},
		{&Platform{Steal: v(0.3)}, "^the hypervisor gave 30 % .*none$"},
		{&Platform{Process: v(0.3), Host: v(0.35), Others: v(0.05), GroupPressure: v(0.5)}, "k6's cgroup waited"},
		{&Platform{Process: v(0.07), Host: v(0.15), Others: v(0.08)}, "neither k6 nor others"},
	} {
		if got := c.p.advice(time.Second, time.Second); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%+v: %s, want %q", c.p, got, c.want)
		}
	}
}

// A sleep before the first send makes messages late as a standstill does, but the machine's hiccups do not show it.
func TestAScriptThatWorksBeforeItSendsIsNamed(t *testing.T) {
	const script = "look first at what the script does before it sends"
	v := func(x float64) *float64 { return &x }
	idle := Platform{Process: v(0.07), Host: v(0.15), Others: v(0.08)}
	crowded := Platform{Process: v(0.2), Host: v(0.9), Others: v(0.7)}
	exhausted := Platform{Process: v(0.05), Host: v(0.99), Others: v(0.94)}
	busy := Platform{Process: v(0.8), Host: v(0.4), Others: v(0)}
	for name, c := range map[string]struct {
		platform     Platform
		hiccup       int64 // ms
		says, spares string
	}{
		"idle":                      {idle, 1, script + ", such as a sleep or a request, and what it does after it while others wait for its VU; apart from that, neither k6 nor others used much", ""},
		"nobody watched":            {Platform{}, 0, script, ""},
		"beside others":             {crowded, 1, script + ", such as a sleep or a request, and what it does after it while others wait for its VU; apart from that, other processes used 70 %", ""},
		"where nothing is left":     {exhausted, 1, "other processes used 94 % of this machine's CPUs, k6 5.0 % of its own: run the generator apart from them; after that look at what the script", script},
		"a standstill":              {idle, 40, "neither k6 nor others used much of the CPUs: look for what stops the process", script},
		"a generator without CPUs":  {busy, 1, "k6 used 80 % of its CPUs", script},
		"hiccups that are a part":   {idle, 5, script + ", such as a sleep", ""},
		"hiccups, and a queue":      {crowded, 5, "; other processes used 70 %", script},
		"others, and hiccups of it": {crowded, 40, "other processes used 70 %", script},
	} {
		t.Run(name, func(t *testing.T) {
			c.platform.Hiccups = &hist.Histogram{}
			if c.hiccup > 0 {
				c.platform.Hiccups = spread(12_000, c.hiccup*msec)
			}
			r := &Result{Platform: &c.platform, Topics: []Topic{{
				Topic: "orders", OpenLoop: true, Counts: counted(map[metric.Counter]int64{metric.Due: 12_000, metric.Sent: 12_000, metric.Confirmed: 12_000, metric.Received: 12_000}),
				Trends: map[string]*hist.Histogram{"publish_latency": spread(12_000, 51*msec), "generator_lag": spread(12_000, 50*msec)},
			}}}
			r.Describe()
			r.Judge(Circumstances{})
			all := strings.Join(r.Verdict.Reasons, "\n")
			if r.Verdict.Valid || !strings.Contains(all, c.says) || c.spares != "" && strings.Contains(all, c.spares) {
				t.Errorf("%+v", r.Verdict)
			}
		})
	}
}
