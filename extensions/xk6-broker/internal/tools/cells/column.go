package cells

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

// Column is a measure of each run.
type Column struct {
	measure.Measure
	Phase string // of the run; "" for the one that leads
}

// Number is the median of a column over runs.
type Number struct {
	Value     float64
	Low, High float64
	Missing   string // the reason if there is no value
	Doubt     string // the reason if it is not reliable
}

// Number returns the median over the runs that have a value.
func (c Column) Number(runs ...Outcome) Number {
	n := Number{Missing: "the run has no result"}
	var values []float64
	for _, o := range runs {
		r, err := c.result(o)
		var v float64
		if err == nil {
			v, err = c.OfRun(r)
		}
		if err != nil {
			n.Missing = err.Error()
			continue
		}
		low, high := c.DoubtOfRun(r)
		n.Doubt = cmp.Or(n.Doubt, low, high)
		values = append(values, v)
	}
	if len(values) > 0 {
		n.Missing = ""
		n.Value, n.Low, n.High = stationary.Median(values), slices.Min(values), slices.Max(values)
	}
	return n
}

// result returns the result of a run in the column's phase.
func (c Column) result(o Outcome) (*result.Result, error) {
	r := o.Result
	if r != nil && c.Phase != "" {
		r = r.During(c.Phase)
	}
	if r == nil {
		return nil, fmt.Errorf("the run has no result, or no phase %q", c.Phase)
	}
	return r, nil
}

// Show returns the number as a text, with the range of several.
func (c Column) Show(n Number) Text {
	if n.Missing != "" {
		return Text{Text: "–", Title: n.Missing}
	}
	t := Text{Text: c.Measure.Show(n.Value), Raw: strconv.FormatFloat(n.Value, 'f', -1, 64), Title: n.Doubt}
	if n.Low != n.High {
		t.Text += fmt.Sprintf(" (%s to %s)", c.Measure.Show(n.Low), c.Measure.Show(n.High))
	}
	if n.Doubt != "" {
		t.Text += "?"
	}
	return t
}
