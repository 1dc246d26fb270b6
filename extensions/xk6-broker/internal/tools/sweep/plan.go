package sweep

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// Plan is every combination of the settings, repeated.
type Plan struct {
	Settings []Setting  `json:"settings"`
	Zips     [][]string `json:"zips,omitempty"` // settings whose values are paired
	Repeat   int        `json:"repeat"`
	Seed     uint64     `json:"seed"` // of the order within each repetition
}

// Axis is a setting, or several with paired values.
type Axis struct {
	Names  []string
	Points []Values
}

// Label names the axis.
func (a Axis) Label() string { return strings.Join(a.Names, ", ") }

// Axes returns the axes of the grid, in the order of their first settings.
func (p Plan) Axes() ([]Axis, error) {
	zipped := map[string]int{}
	for i, names := range p.Zips {
		if _, err := zip(p.Settings, names); err != nil {
			return nil, err
		}
		for _, name := range names {
			if _, twice := zipped[name]; twice {
				return nil, fmt.Errorf("--zip: %s is named twice", name)
			}
			zipped[name] = i
		}
	}
	var axes []Axis
	done := map[string]bool{}
	for _, s := range p.Settings {
		if done[s.Name] {
			continue
		}
		together := []Setting{s}
		if i, ok := zipped[s.Name]; ok {
			together, _ = zip(p.Settings, p.Zips[i]) // as above
		}
		axis := Axis{Points: make([]Values, len(s.Values))}
		for _, s := range together {
			done[s.Name] = true
			axis.Names = append(axis.Names, s.Name)
			for k, v := range s.Values {
				axis.Points[k] = append(axis.Points[k], Value{s.Name, v})
			}
		}
		axes = append(axes, axis)
	}
	return axes, nil
}

// mostCells bounds a study: beyond, a list of values is a mistake.
const mostCells = 100_000

// Check returns an error if the plan is not valid.
func (p Plan) Check() error {
	if len(p.Settings) == 0 {
		return errors.New("nothing varies: give --set NAME=VALUE,VALUE")
	}
	for i, s := range p.Settings {
		if err := s.check(); err != nil {
			return err
		}
		if slices.ContainsFunc(p.Settings[:i], func(other Setting) bool { return other.Name == s.Name }) {
			return fmt.Errorf("--set %s is given twice: write all values in one, NAME=VALUE,VALUE", s.Name)
		}
	}
	if p.Repeat < 1 {
		return fmt.Errorf("--repeat %d: it must be 1 or more", p.Repeat)
	}
	axes, err := p.Axes()
	if err != nil {
		return err
	}
	cells := p.Repeat
	for _, a := range axes {
		if cells *= len(a.Points); cells > mostCells {
			return fmt.Errorf("these settings make more than %d cells", mostCells)
		}
	}
	return nil
}

// Combinations returns every combination of the axes' points, the last axis fastest. The plan must be valid.
func (p Plan) Combinations() []Values {
	axes, _ := p.Axes() // as Check has made them
	return combine(axes)
}

// Cells returns every run in order. Each repetition has every combination once, shuffled by the seed, so that drift does
// not look like the effect of a setting. The plan must be valid.
func (p Plan) Cells() []Cell {
	combinations := p.Combinations()
	random := rand.New(rand.NewPCG(p.Seed, 0)) //gosec:disable G404 -- an order that can be had again, and no secret
	var cells []Cell
	digits := len(fmt.Sprint(p.Repeat * len(combinations)))
	for repetition := 1; repetition <= p.Repeat; repetition++ {
		for _, c := range random.Perm(len(combinations)) {
			index := len(cells) + 1
			cells = append(cells, Cell{
				Index: index, Repetition: repetition, Settings: combinations[c],
				Folder: report.Sanitise(fmt.Sprintf("%0*d-%s", digits, index, combinations[c])),
			})
		}
	}
	return cells
}

// Asked returns the facts of the plan.
func (p Plan) Asked() []Fact {
	var facts []Fact
	for _, s := range p.Settings {
		var values []string
		for _, v := range s.Values {
			values = append(values, Value{s.Name, v}.Shown())
		}
		facts = append(facts, Fact{"--set " + s.Name, strings.Join(values, ", ")})
	}
	var zips []string
	for _, names := range p.Zips {
		zips = append(zips, strings.Join(names, ","))
	}
	return append(facts, Fact{"--zip", strings.Join(zips, " ")}, Fact{"--repeat", fmt.Sprint(p.Repeat)}, Fact{SeedFact, fmt.Sprint(p.Seed)})
}

// combine returns every combination of some axes, the last fastest; an empty one if there are none.
func combine(axes []Axis) []Values {
	all := []Values{nil}
	for _, a := range axes {
		var more []Values
		for _, have := range all {
			for _, point := range a.Points {
				more = append(more, slices.Concat(have, point))
			}
		}
		all = more
	}
	return all
}
