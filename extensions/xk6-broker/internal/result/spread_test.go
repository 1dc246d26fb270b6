package result

import (
	"encoding/json"
	"math"
	"testing"
)

// What processes counted in intervals of their own is in those of the whole as it came, and nothing is counted twice or not at all.
func TestIntervalsOfProcessesAreSpread(t *testing.T) {
	burst := func(from, every float64, n int64) Activity {
		return Activity{From: from, To: from + every*float64(n-1), Pauses: map[int]Pauses{26: {n - 1, every * float64(n-1)}}}
	}
	const second = 1.0
	for name, c := range map[string]struct {
		p    Point
		want []int64
	}{
		"all the time":     {Point{At: 3.25, Seconds: 1, Counts: map[string]int64{"sent": 1000}, Active: map[string]Activity{"sent": {From: 2.25, To: 3.25}}}, []int64{750, 250}},
		"nothing is known": {Point{At: 3.25, Seconds: 1, Counts: map[string]int64{"sent": 1000}}, []int64{750, 250}},
		"in its interval":  {Point{At: 3, Seconds: 1, Counts: map[string]int64{"sent": 1000}, Active: map[string]Activity{"sent": {From: 2.1, To: 2.9}}}, []int64{1000}},
		"a batch before":   {Point{At: 3.25, Seconds: 1, Counts: map[string]int64{"sent": 40}, Active: map[string]Activity{"sent": {From: 2.9, To: 2.9}}}, []int64{40, 0}},
		"a batch after":    {Point{At: 3.25, Seconds: 1, Counts: map[string]int64{"sent": 40}, Active: map[string]Activity{"sent": {From: 3.1, To: 3.1}}}, []int64{0, 40}},
		"four batches":     {Point{At: 3.55, Seconds: 1, Counts: map[string]int64{"sent": 400}, Active: map[string]Activity{"sent": burst(2.6, 0.25, 4)}}, []int64{200, 200}},
		"long":             {Point{At: 4.5, Seconds: 2, Counts: map[string]int64{"sent": 201}, Active: map[string]Activity{"sent": {From: 2.5, To: 4.5}}}, []int64{50, 101, 50}},
	} {
		pieces := c.p.over(second)
		if len(pieces) != len(c.want) {
			t.Errorf("%s: %d pieces", name, len(pieces))
			continue
		}
		seconds := 0.0
		for i, piece := range pieces {
			seconds += piece.Seconds
			if got := piece.Came["sent"]; got != c.want[i] {
				t.Errorf("%s: %d in piece %d, want %d", name, got, i, c.want[i])
			}
		}
		if math.Abs(seconds-c.p.Seconds) > 1e-9 {
			t.Errorf("%s: the pieces take %v s", name, seconds)
		}
	}
}

// An interval in which those of processes end, and nothing came, adds nothing to a rate, and a result that was read again knows it too.
func TestAnIntervalInWhichNothingCame(t *testing.T) {
	var history []Point
	for _, p := range []Point{
		{At: 11.25, Seconds: 1, Counts: map[string]int64{"sent": 80}, Active: map[string]Activity{"sent": {From: 10.25, To: 10.9}}},
		{At: 12.25, Seconds: 1},
	} {
		for _, piece := range p.over(1) {
			history = addCame(history, piece, 1)
		}
		p.Active = nil
		history = addPoint(history, p, 1, otherPoint)
	}
	written, err := json.Marshal(history)
	if err != nil {
		t.Fatal(err)
	}
	var again []Point
	if err := json.Unmarshal(written, &again); err != nil {
		t.Fatal(err)
	}
	for _, all := range [][]Point{history, again} {
		if len(all) != 3 || all[0].came()["sent"] != 80 || all[1].Counts["sent"] != 80 || all[1].came()["sent"] != 0 {
			t.Errorf("%+v", all)
		}
	}
}
