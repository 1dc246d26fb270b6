package sweep

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// Plan is what a sweep runs: every combination of the settings, so many times.
type Plan struct {
	Settings []Setting  `json:"settings"`
	Zips     [][]string `json:"zips,omitempty"` // settings whose values go together: the first with the first, and so on
	Repeat   int        `json:"repeat"`
	Seed     uint64     `json:"seed"` // of the order within each repetition
}

// Axis is a setting, or several whose values go together.
type Axis struct {
	Names  []string
	Points []Values
}

// Label names the axis.
func (a Axis) Label() string { return strings.Join(a.Names, ", ") }

// Axes are those of the grid, in the order in which their first settings are listed.
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
		of := []Setting{s}
		if i, ok := zipped[s.Name]; ok {
			of, _ = zip(p.Settings, p.Zips[i]) // as above
		}
		axis := Axis{Points: make([]Values, len(s.Values))}
		for _, s := range of {
			done[s.Name] = true
			axis.Names = append(axis.Names, s.Name)
			for k, v := range s.all() {
				axis.Points[k] = append(axis.Points[k], v)
			}
		}
		axes = append(axes, axis)
	}
	return axes, nil
}

// most bounds how many cells a study has: beyond, a list of values is a mistake.
const most = 100_000

// Check finds the mistakes that can be known of the plan alone.
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
		if cells *= len(a.Points); cells > most {
			return fmt.Errorf("these settings make more than %d cells", most)
		}
	}
	return nil
}

// Combinations is every combination of the axes' points, the last axis fastest. The plan is one that Check has passed.
func (p Plan) Combinations() []Values {
	axes, _ := p.Axes() // as Check has made them
	return combine(axes)
}

// Cells is every run of the study in its order. Each repetition holds every combination once, shuffled by the seed, so that what drifts with time
// does not look like the effect of a setting. The plan is one that Check has passed.
func (p Plan) Cells() []Cell {
	combinations := p.Combinations()
	random := rand.New(rand.NewPCG(p.Seed, 0)) //gosec:disable G404 -- an order that can be had again, and no secret
	var cells []Cell
	digits := len(fmt.Sprint(p.Repeat * len(combinations)))
	for repetition := 1; repetition <= p.Repeat; repetition++ {
		for _, of := range random.Perm(len(combinations)) {
			index := len(cells) + 1
			cells = append(cells, Cell{
				Index: index, Repetition: repetition, Settings: combinations[of],
				Folder: report.Sanitise(fmt.Sprintf("%0*d-%s", digits, index, combinations[of])),
			})
		}
	}
	return cells
}

// Asked is what was asked for with the plan.
func (p Plan) Asked() []Fact {
	var facts []Fact
	for _, s := range p.Settings {
		var values []string
		for _, v := range s.Values {
			values = append(values, compared(v, shownAs(s.Name, v)))
		}
		facts = append(facts, Fact{"--set " + s.Name, strings.Join(values, ", ")})
	}
	var zips []string
	for _, names := range p.Zips {
		zips = append(zips, strings.Join(names, ","))
	}
	return append(facts, Fact{"--zip", strings.Join(zips, " ")}, Fact{"--repeat", fmt.Sprint(p.Repeat)}, Fact{SeedFact, fmt.Sprint(p.Seed)})
}
