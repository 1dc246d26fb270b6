package report

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// accountColumns are what became of a group's messages, in the page's order. Those that are not always there are left out where they
// are 0 for every group.
var accountColumns = []struct {
	name, doc   string
	always, bad bool
	read        func(*result.Group) uint64
}{
	{"expected", "", true, false, func(g *result.Group) uint64 { return g.Expected }},
	{"received", "", true, false, func(g *result.Group) uint64 { return g.Received }},
	{"drained", "read at the end of the test, not by its consumers, to complete the accounting", false, false, func(g *result.Group) uint64 { return g.Drained }},
	{"routed", "received by a consumer of the test on another topic", false, false, func(g *result.Group) uint64 { return g.Routed }},
	{"lost", "confirmed, not received, and no longer at the broker", true, true, func(g *result.Group) uint64 { return g.Lost }},
	{"undelivered", "still at the broker", false, false, func(g *result.Group) uint64 { return g.Undelivered }},
	{"uncertain", "not received, and it is not known what became of them", false, true, func(g *result.Group) uint64 { return g.Uncertain }},
	{"duplicated", "copies of messages that were settled already", true, true, func(g *result.Group) uint64 { return g.Duplicated }},
	{"reordered", "", true, false, func(g *result.Group) uint64 { return g.Reordered }},
	{"redelivered", "delivered again before they were settled", true, false, func(g *result.Group) uint64 { return g.Redelivered }},
	{"settled", "", true, false, func(g *result.Group) uint64 { return g.Settled }},
	{"unexpected", "received, but not counted as sent to this group", false, false, func(g *result.Group) uint64 { return g.Unexpected }},
	{"foreign", "of other tests", false, false, func(g *result.Group) uint64 { return g.Foreign }},
}

// accountView is the table of what became of the messages.
type accountView struct {
	Columns []accountColumn
	Rows    []accountRow
}

type accountColumn struct{ Name, Doc string }

type accountRow struct {
	Group string
	Cells []accountCell
}

type accountCell struct {
	Name    string
	Value   uint64
	Bad     bool
	Unknown string // why there is no telling; "" where there is
}

func newAccountView(groups []result.Group) accountView {
	v := accountView{Rows: make([]accountRow, len(groups))}
	for _, c := range accountColumns {
		shown := c.always
		for i := range groups {
			shown = shown || c.read(&groups[i]) > 0
		}
		if !shown {
			continue
		}
		v.Columns = append(v.Columns, accountColumn{c.name, c.doc})
		for i := range groups {
			n := c.read(&groups[i])
			v.Rows[i].Group = groups[i].Group
			v.Rows[i].Cells = append(v.Rows[i].Cells, accountCell{c.name, n, c.bad && n > 0, unknown(c.name, &groups[i])})
		}
	}
	return v
}

// unobserved is why nothing is seen to be lost where nothing is expected.
const unobserved = "no message was expected here, so loss could not be observed"

// unknown says why a number cannot be known.
func unknown(column string, g *result.Group) string {
	switch {
	case column == "lost" && g.Expected == 0:
		return unobserved
	case !g.Copies() && g.Group == account.ReadBack && slices.Contains([]string{"duplicated", "reordered", "redelivered", "settled"}, column):
		return verdict.NoCopies
	case column == "reordered" && g.Unordered:
		return verdict.NoOrder
	case slices.Contains([]string{"duplicated", "reordered", "redelivered"}, column) && !g.Copies():
		return "what was received is of other topics or tests, and in no account of this one"
	}
	return ""
}
