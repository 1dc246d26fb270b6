package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// The page has the hiccups, CPU, steal and pressure of the machine where they are known, and no section where nothing is.
func TestHTML_Machine_AsObserved(t *testing.T) {
	half, tenth := 0.5, 0.1
	r := sample()
	r.Platform = &result.Platform{Hiccups: evenly(20_000, 1000), Process: &half, Host: &half, Steal: &tenth, Pressure: &tenth, GroupPressure: &half}
	var text bytes.Buffer
	if err := HTML(&text, r); err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(text.String(), `<section id="machine">`)
	section, _, _ = strings.Cut(section, "</section>")
	for _, want := range []string{
		"wakes every ms was late by", ">p99</th>", ">max</th>", "CPU used by k6</th><td>50 % of its CPUs", "CPU used by all processes</th><td>50 % of the machine",
		"(steal)</th><td>10 %", "a task of the machine waited for a CPU (pressure)</th><td>10 %", "cgroup waited for a CPU (pressure)</th><td>50 %",
	} {
		if !strings.Contains(section, want) {
			t.Errorf("the page's section on the machine lacks %q:\n%s", want, section)
		}
	}
}
