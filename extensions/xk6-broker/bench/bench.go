// Package bench compares the engine with what someone would write by hand on the same client library, and with the brokers' own
// tools. The loops of one comparison run in turns, several rounds of them, and the medians count: on a shared machine only
// ratios from one run mean anything.
package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

// Rounds is how often each loop of a comparison runs.
const Rounds = 7

// Loop is one way to move the messages of a comparison.
type Loop struct {
	Name string
	// Run moves them and returns how long that took.
	Run func() (time.Duration, error)
	// Tool says that another program does it, whose CPU time is not this process's, and which takes a while to start: it
	// takes part in the first [ToolRounds] rounds only. One that fails is left out, and that is said.
	Tool bool
}

// Case is a comparison: the same messages, moved in different ways.
type Case struct {
	Name     string
	Messages int
	// Before, where there is one, makes ready for a loop's turn. It is not timed.
	Before func() error
	// Loops begin with the measure, a loop written by hand.
	Loops []Loop
}

// Row is the outcome of one loop.
type Row struct {
	Case     string    `json:"case"`
	Loop     string    `json:"loop"`
	Messages int       `json:"messages"`              // in each round
	Rates    []float64 `json:"rates"`                 // messages per second, of each round
	Median   float64   `json:"median"`                // of the rates
	Ratio    float64   `json:"ratio"`                 // of this rate to the first loop's, the median over the rounds
	Engine   float64   `json:"engine,omitempty"`      // of the engine's rate to this one, the median over the rounds
	CPU      float64   `json:"cpu_us,omitempty"`      // CPU time of this process per message, µs, median; none for another program
	CPUMore  float64   `json:"cpu_more_us,omitempty"` // than the first loop takes, µs, the median over the rounds
	Load     float64   `json:"load"`                  // the machine's load average, over a minute, before the case began
}

// engineLoop is the name of the engine's loop.
const engineLoop = "engine"

// Compare runs the loops in turns and reports the ratios.
func (c Case) Compare(b *testing.B) []Row {
	b.Helper()
	rows := make([]Row, len(c.Loops))
	spent := make([][]float64, len(c.Loops))
	order := make([]int, len(c.Loops))
	before := LoadAverage()
	for i, l := range c.Loops {
		rows[i] = Row{Case: c.Name, Loop: l.Name, Messages: c.Messages, Load: before}
		order[i] = i
	}
	for round := range Rounds {
		for _, i := range order {
			l := c.Loops[i]
			if l.Tool && (round >= ToolRounds || len(rows[i].Rates) < round) {
				continue
			}
			rate, cost, err := c.turn(l)
			if err != nil && l.Tool {
				b.Logf("%s: without %s: %v", c.Name, l.Name, err)
				rows[i].Rates = nil
				continue
			}
			if err != nil {
				b.Fatalf("%s: %s: %v", c.Name, l.Name, err)
			}
			rows[i].Rates = append(rows[i].Rates, rate)
			spent[i] = append(spent[i], cost)
		}
		slices.Reverse(order) // whoever comes second finds the machine warm
	}
	for i, l := range c.Loops {
		if len(rows[i].Rates) == 0 {
			continue
		}
		rows[i].Median = Median(rows[i].Rates)
		rows[i].Ratio = ratio(rows[i].Rates, rows[0].Rates)
		if l.Tool {
			continue
		}
		rows[i].CPU = Median(spent[i])
		rows[i].CPUMore = more(spent[i], spent[0])
	}
	rows = slices.DeleteFunc(rows, func(r Row) bool { return len(r.Rates) == 0 })
	if e := slices.IndexFunc(rows, func(r Row) bool { return r.Loop == engineLoop }); e >= 0 {
		for i := range rows {
			rows[i].Engine = ratio(rows[e].Rates, rows[i].Rates)
		}
	}
	for _, r := range rows[1:] {
		b.ReportMetric(r.Ratio, unit(r.Loop)+"-ratio")
	}
	b.ReportMetric(0, "ns/op")
	if err := Write(rows...); err != nil {
		b.Fatal(err)
	}
	return rows
}

// turn is one loop's turn: messages per second, and µs of CPU per message.
func (c Case) turn(l Loop) (rate, cost float64, err error) {
	if c.Before != nil {
		if err := c.Before(); err != nil {
			return 0, 0, fmt.Errorf("before it: %w", err)
		}
	}
	before := machine.CPU()
	took, err := l.Run()
	if err != nil {
		return 0, 0, err
	}
	n := float64(c.Messages)
	return n / took.Seconds(), float64((machine.CPU() - before).Nanoseconds()) / 1e3 / n, nil
}

// ratio is the median of the ratios of those rounds that both took part in.
func ratio(of, to []float64) float64 {
	all := make([]float64, min(len(of), len(to)))
	for i := range all {
		all[i] = of[i] / to[i]
	}
	return Median(all)
}

// more is the median of the differences.
func more(of, to []float64) float64 {
	all := make([]float64, min(len(of), len(to)))
	for i := range all {
		all[i] = of[i] - to[i]
	}
	return Median(all)
}

// Median is that of a copy, and NaN of nothing.
func Median(all []float64) float64 { return stationary.Median(all) }
