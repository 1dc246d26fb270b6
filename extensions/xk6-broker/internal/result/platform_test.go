package result

import (
	"regexp"
	"testing"
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
		if got := c.p.advice(); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%+v: %s, want %q", c.p, got, c.want)
		}
	}
}
