package report

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"

// accountColumns are what became of a group's messages, in the page's order. Those that are not always there are left out where they
// are 0 for every group.
var accountColumns = []struct {
	name, doc   string
	always, bad bool
	read        func(*load.GroupResult) uint64
}{
	{"expected", "", true, false, func(g *load.GroupResult) uint64 { return g.Expected }},
	{"received", "", true, false, func(g *load.GroupResult) uint64 { return g.Received }},
	{"drained", "read at the end of the test, not by its consumers, to complete the accounting", false, false, func(g *load.GroupResult) uint64 { return g.Drained }},
	{"removed", "deleted by the test itself", false, false, func(g *load.GroupResult) uint64 { return g.Removed }},
	{"lost", "confirmed, not received, and no longer at the broker", true, true, func(g *load.GroupResult) uint64 { return g.Lost }},
	{"undelivered", "still at the broker", false, false, func(g *load.GroupResult) uint64 { return g.Undelivered }},
	{"uncertain", "lost, or still at the broker", false, true, func(g *load.GroupResult) uint64 { return g.Uncertain }},
	{"elsewhere", "received by another process of the test, or lost: k6 x broker merge tells", false, false, func(g *load.GroupResult) uint64 { return g.Elsewhere }},
	{"duplicated", "copies of messages that were settled already", true, true, func(g *load.GroupResult) uint64 { return g.Duplicated }},
	{"reordered", "", true, false, func(g *load.GroupResult) uint64 { return g.Reordered }},
	{"redelivered", "delivered again before they were settled", true, false, func(g *load.GroupResult) uint64 { return g.Redelivered }},
	{"settled", "", true, false, func(g *load.GroupResult) uint64 { return g.Settled }},
	{"unexpected", "sent before the consumer was ready, or their send was reported as failed", false, false, func(g *load.GroupResult) uint64 { return g.Unexpected }},
	{"foreign", "of other tests", false, false, func(g *load.GroupResult) uint64 { return g.Foreign }},
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
	Name  string
	Value uint64
	Bad   bool
	Known bool // what is not expected cannot be seen to be lost
}

func newAccountView(groups []load.GroupResult) accountView {
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
			v.Rows[i].Cells = append(v.Rows[i].Cells, accountCell{c.name, n, c.bad && n > 0, c.name != "lost" || groups[i].Expected > 0})
		}
	}
	return v
}
