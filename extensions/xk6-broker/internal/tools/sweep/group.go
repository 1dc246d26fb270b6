package sweep

import (
	"cmp"
	"math"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

// Group is the combinations of settings in which a confirmation proved the same: only these are compared with one another.
type Group struct {
	Confirm string // "unconfirmed", "accepted", "replicated"; "" where nothing was sent
	Meaning string // the same, and by what: in words
	Entries []Entry
}

// Entry is one combination of settings, with its repetitions.
type Entry struct {
	Settings Values
	Cells    []Row // those that have a result, in the order of time
	Failed   int   // cells without a result
	Valid    int
	Columns  []Spread
}

// Spread is a column over the repetitions.
type Spread struct {
	Median, Low, High float64
	Count             int    // of the repetitions that know it; 0 where none does
	Of                int    // repetitions with a result
	Why               string // one does not
	Doubt             string // why one should not be relied on
}

// GroupsOf puts the rows of a plan into groups, what proves most first. A combination whose repetitions proved different things is in several, with those that
// proved the same in each; one without any result is in none.
func GroupsOf(combinations []Values, columns []measure.Measure, rows []Row) (groups []Group, failed []Entry) {
	for _, settings := range combinations {
		without := 0
		var entries []Entry
		for _, r := range rows {
			switch {
			case r.Cell.Settings.String() != settings.String():
				continue
			case r.Error != "":
				without++
				continue
			}
			i := slices.IndexFunc(entries, func(e Entry) bool { return e.Cells[0].Meaning == r.Meaning })
			if i < 0 {
				i = len(entries)
				entries = append(entries, Entry{Settings: settings})
			}
			e := &entries[i]
			e.Cells = append(e.Cells, r)
			if r.Valid {
				e.Valid++
			}
		}
		if len(entries) == 0 && without > 0 {
			failed = append(failed, Entry{Settings: settings, Failed: without})
		}
		for _, e := range entries {
			e.Failed = without
			for i := range columns {
				e.Columns = append(e.Columns, spread(i, e.Cells))
			}
			of := e.Cells[0]
			i := slices.IndexFunc(groups, func(g Group) bool { return g.Meaning == of.Meaning })
			if i < 0 {
				i = len(groups)
				groups = append(groups, Group{Confirm: of.Confirm, Meaning: of.Meaning})
			}
			groups[i].Entries = append(groups[i].Entries, e)
		}
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(strength(b.Confirm), strength(a.Confirm)), cmp.Compare(a.Meaning, b.Meaning))
	})
	return groups, failed
}

// strength orders what confirmations prove.
func strength(confirm string) int {
	return slices.Index([]string{"", "unconfirmed", "accepted", "replicated"}, confirm)
}

func spread(column int, rows []Row) Spread {
	s := Spread{Of: len(rows), Median: math.NaN(), Low: math.NaN(), High: math.NaN()}
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
		s.Median, s.Low, s.High = stationary.Median(values), slices.Min(values), slices.Max(values)
	}
	return s
}
