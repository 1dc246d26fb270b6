package report

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// fate is a column of the account. A fate with a doc is left out if it is 0 for every group.
type fate struct {
	name, doc string
	bad       bool // if it is not 0
	read      func(*result.Group) uint64
}

// fates are the columns of the account.
var fates = []fate{
	{"expected", "", false, func(g *result.Group) uint64 { return g.Expected }},
	{"received", "", false, func(g *result.Group) uint64 { return g.Received }},
	{"drained", "read at the end of the test", false, func(g *result.Group) uint64 { return g.Drained }},
	{"routed", "received on another topic", false, func(g *result.Group) uint64 { return g.Routed }},
	{"lost", "", true, func(g *result.Group) uint64 { return g.Lost }},
	{"undelivered", "still at the broker", false, func(g *result.Group) uint64 { return g.Undelivered }},
	{"uncertain", "not received, fate not known", true, func(g *result.Group) uint64 { return g.Uncertain }},
	{"duplicated", "", true, func(g *result.Group) uint64 { return g.Duplicated }},
	{"reordered", "", false, func(g *result.Group) uint64 { return g.Reordered }},
	{"redelivered", "", false, func(g *result.Group) uint64 { return g.Redelivered }},
	{"settled", "", false, func(g *result.Group) uint64 { return g.Settled }},
	{"unexpected", "not counted as sent to this group", false, func(g *result.Group) uint64 { return g.Unexpected }},
	{"foreign", "of other tests", false, func(g *result.Group) uint64 { return g.Foreign }},
}

// accountOf is the table of the fates of a topic's messages, with a row for each group.
func accountOf(t *result.Topic) Table {
	table := Table{Class: "accounting", Rows: make([]Row, len(t.Groups))}
	for i, g := range t.Groups {
		table.Rows[i] = Row{Name: g.Group, Label: groupName(g)}
	}
	for _, f := range fates {
		if f.doc != "" && !slices.ContainsFunc(t.Groups, func(g result.Group) bool { return f.read(&g) > 0 }) {
			continue
		}
		head := f.name
		if f.doc != "" {
			head += " (" + f.doc + ")"
		}
		table.Heads = append(table.Heads, head)
		for i := range t.Groups {
			table.Rows[i].Cells = append(table.Rows[i].Cells, f.cell(&t.Groups[i]))
		}
	}
	return table
}

// unobserved is why no message is lost if none was expected.
const unobserved = "no message was expected here, so loss could not be observed"

// Cell is the fate's number of a group.
func (f fate) cell(g *result.Group) Cell {
	switch f.name {
	case "lost":
		if g.Expected == 0 {
			return Unknown(unobserved)
		}
	case "duplicated", "reordered", "redelivered":
		if _, why := verdict.CountOf(&g.Account, f.name); why != "" {
			return Unknown(why)
		}
	case "settled":
		if g.Group == account.ReadBack {
			return Unknown(verdict.NoCopies)
		}
	}
	return count(f.read(g), f.bad)
}

// unobservedReason returns why a topic has no account; "" if it has one or sent nothing.
func unobservedReason(t *result.Topic) string {
	switch {
	case len(t.Groups) > 0:
		return ""
	case t.OnlySends:
		return "the driver only sends: what becomes of the messages is not observed"
	case t.Counts["sent"] > 0 && t.Trends[recording.RequestLatency.String()] == nil:
		return "nothing was received in this run, so loss could not be observed"
	}
	return ""
}

// countsOf is the table of a topic's counters.
func countsOf(t *result.Topic) Table {
	table := Table{Class: "counts", Caption: "Messages"}
	for c := range recording.Counter(recording.NumCounters) {
		n, counted := t.Counts[c.String()]
		if counted || c.Always() && !(t.OnlySends && c.Consumers()) {
			line := Row{Name: c.String(), Label: c.String(), Doc: c.Doc(), Cells: []Cell{count(n, false)}}
			table.Rows = append(table.Rows, line)
		}
	}
	return table
}

// errorsOf is the table of a topic's errors.
func errorsOf(t *result.Topic) Table {
	table := Table{Class: "errors", Caption: "Errors"}
	for _, e := range t.Errors {
		table.Rows = append(table.Rows, Row{Label: e.Op + " " + e.Kind, Cells: []Cell{count(e.Count, true)}})
	}
	return table
}

// rate returns a counter per second, or that it is not known.
func rate(t *result.Topic, c recording.Counter) Cell {
	n, seconds := t.RateBasis(c.String())
	if seconds == 0 {
		return Unknown("too short for a rate")
	}
	return Cell{Text: Rate(n/seconds) + "/s"}
}
