package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

// What it takes to tell a difference from noise.
const (
	// enough repetitions on both sides: with fewer, no test could come below the level (the exact test on 3 and 3 gives 0.1 at best).
	enough = 4
	level  = 0.05
)

// Comparison is several sides, measured against the first.
type Comparison struct {
	Sides       []Side
	Topics      []Topic
	Differences []Difference // what else differs: options, versions, machines
	Warnings    []string

	partly []pairing // the topics that only some of the runs have
}

// Topic is what was found of one topic.
type Topic struct {
	Name  string
	Rows  []Row
	pairs pairing
}

// Row is one measure on all sides. The first is what the others are measured against.
type Row struct {
	measure.Measure
	Cells []Cell
}

// Cell is a measure on one side.
type Cell struct {
	Values       []float64 // of the repetitions that know it
	Median       float64
	Low          float64 // the least of the repetitions
	High         float64
	Reason       error // why no value is known or, of a count, why one of the repetitions does not know it
	Ratio        float64
	P            float64 // of the Mann-Whitney U test against the first side; NaN where there are too few repetitions
	Significance Significance

	tooLow, tooHigh string // why it may be less than the truth, and why more
}

// Significance is what can be said of a difference.
type Significance uint8

// What it may be.
const (
	Nothing Significance = iota // the first side itself, or no value
	Unknown                     // too few repetitions to tell a difference from noise
	Noise                       // no more than noise
	Differs                     // beyond noise
	Same                        // equal in every repetition
)

// Compare measures the sides against the first.
func Compare(sides []Side) (*Comparison, error) {
	c := &Comparison{Sides: sides}
	pairs, partly := pair(sides)
	c.partly = partly
	if len(pairs) == 0 {
		return nil, errors.New("compare: there is no topic that all runs have")
	}
	for _, p := range partly {
		c.Warnings = append(c.Warnings, fmt.Sprintf("topic %s is not in all runs and is left out of the tables", p.name))
	}
	for _, p := range pairs {
		topic := Topic{Name: p.name, pairs: p}
		for _, m := range measures() {
			if row := rowOf(m, p); slices.ContainsFunc(row.Cells, func(c Cell) bool { return len(c.Values) > 0 }) {
				topic.Rows = append(topic.Rows, row)
			}
		}
		c.Topics = append(c.Topics, topic)
	}
	c.differ()
	return c, nil
}

// row measures one thing on all sides.
func rowOf(m measure.Measure, p pairing) Row {
	row := Row{Measure: m}
	for i, topics := range p.topics {
		cell := Cell{Ratio: math.NaN(), P: math.NaN()}
		cell.Values, cell.Reason = values(m, topics)
		cell.tooLow, cell.tooHigh = doubts(m, topics)
		if len(cell.Values) > 0 {
			if m.Unit != "" {
				cell.Reason = nil
			}
			cell.Median, cell.Low, cell.High = stationary.Median(cell.Values), slices.Min(cell.Values), slices.Max(cell.Values)
		}
		if i > 0 {
			cell.against(row.Cells[0])
		}
		row.Cells = append(row.Cells, cell)
	}
	return row
}

// against compares a cell with that of the first side.
func (c *Cell) against(first Cell) {
	if len(c.Values) == 0 || len(first.Values) == 0 {
		return
	}
	if first.Median != 0 {
		c.Ratio = c.Median / first.Median
	} else if c.Median == 0 {
		c.Ratio = 1
	}
	if all := slices.Concat(first.Values, c.Values); slices.Min(all) == slices.Max(all) {
		c.P, c.Significance = 1, Same
		return
	}
	if len(c.Values) < enough || len(first.Values) < enough {
		c.Significance = Unknown
		return
	}
	test, err := stats.MannWhitneyUTest(c.Values, first.Values, stats.LocationDiffers)
	if err != nil {
		c.Significance = Unknown
		return
	}
	if c.P, c.Significance = test.P, Noise; test.P < level {
		c.Significance = Differs
	}
}
