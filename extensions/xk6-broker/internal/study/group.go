package study

import (
	"cmp"
	"math"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/measure"
)

// Group is the combinations of settings in which a confirmation proved the same: only these are compared with one another.
type Group struct {
	Confirm string // "unconfirmed", "accepted", "replicated"; "" where nothing was sent
	Entries []Entry
}

// Entry is one combination of settings, with its repetitions.
type Entry struct {
	Settings Values
	Meanings []string // what confirmations proved, in words
	Cells    []Row    // those that have a result, in the order of time
	Failed   int      // cells without a result
	Valid    int
	Columns  []Spread
}

// Spread is a column over the repetitions.
type Spread struct {
	Median, Low, High float64
	Count             int    // of the repetitions that know it; 0 where none does
	Why               string // one does not
	Doubt             string // why one should not be relied on
}

// GroupsOf puts the rows of a plan into groups, what proves most first. Combinations without any result are in none.
func GroupsOf(combinations []Values, columns []measure.Measure, rows []Row) (groups []Group, failed []Entry) {
	for _, settings := range combinations {
		e := Entry{Settings: settings, Columns: make([]Spread, len(columns))}
		confirms := []string{}
		for _, r := range rows {
			switch {
			case r.Cell.Settings.String() != settings.String():
			case r.Error != "":
				e.Failed++
			default:
				e.Cells = append(e.Cells, r)
				confirms = append(confirms, r.Confirm)
				if r.Valid {
					e.Valid++
				}
				if !slices.Contains(e.Meanings, r.Meaning) {
					e.Meanings = append(e.Meanings, r.Meaning)
				}
			}
		}
		for i := range columns {
			e.Columns[i] = spread(i, e.Cells)
		}
		if len(e.Cells) == 0 {
			if e.Failed > 0 {
				failed = append(failed, e)
			}
			continue
		}
		confirm := slices.MinFunc(confirms, func(a, b string) int { return cmp.Compare(strength(a), strength(b)) })
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Confirm == confirm })
		if i < 0 {
			i = len(groups)
			groups = append(groups, Group{Confirm: confirm})
		}
		groups[i].Entries = append(groups[i].Entries, e)
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return cmp.Compare(strength(b.Confirm), strength(a.Confirm)) })
	return groups, failed
}

// strength orders what confirmations prove.
func strength(confirm string) int {
	return slices.Index([]string{"", "unconfirmed", "accepted", "replicated"}, confirm)
}

func spread(column int, rows []Row) Spread {
	s := Spread{Median: math.NaN(), Low: math.NaN(), High: math.NaN()}
	var values []float64
	for _, r := range rows {
		n := r.Numbers[column]
		if !n.Known {
			s.Why = cmp.Or(s.Why, n.Why)
			continue
		}
		s.Doubt = cmp.Or(s.Doubt, n.Doubt)
		values = append(values, n.Value)
	}
	if s.Count = len(values); s.Count > 0 {
		slices.Sort(values)
		s.Low, s.High = values[0], values[len(values)-1]
		s.Median = (values[(len(values)-1)/2] + values[len(values)/2]) / 2
	}
	return s
}
