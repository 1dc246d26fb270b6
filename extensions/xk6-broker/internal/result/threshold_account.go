package result

import "fmt"

// Account decides a condition on a count of the account, over the groups that are asked for: lost, undelivered, uncertain, drained,
// duplicated, reordered or redelivered. It cannot be judged where one of them could not have had such messages, or cannot tell. A group
// that received messages of other topics only, such as dead letters, has no account of copies: these are judged without it, and cannot be
// where there is no other. Seconds is how long the test took.
func (r *Result) Account(c Condition, count string, asked func(*Topic, *Group) bool, seconds float64) Decision {
	of, ok := accountCounts[count]
	if !ok {
		return Undecided("the account has no count %q", count)
	}
	var sum uint64
	found, judged, why, apart := false, false, "", ""
	for i := range r.Topics {
		t := &r.Topics[i]
		for k := range t.Groups {
			g := &t.Groups[k]
			if !asked(t, g) {
				continue
			}
			found = true
			if of.copies && !g.Copies() {
				apart = t.NameOf(g) + ": " + g.withoutCopies()
				continue
			}
			judged = true
			sum += of.count(&g.Account)
			if doubt := of.doubt(&g.Account); doubt != "" && why == "" {
				why = t.NameOf(g) + ": " + doubt
			}
		}
	}
	if !found {
		return Undecided("there is no such group: nothing of the kind was observed")
	}
	if !judged {
		return Undecided("%s", apart)
	}
	if why == "" && !r.Verdict.Account {
		why = "the account of this run cannot be believed"
	}
	return c.DecideCount(float64(sum), seconds).unless(why)
}

// Doubt says why a count of the account is not known, such as that of the lost; "" where it is.
func (a *Account) Doubt(count string) string { return accountCounts[count].doubt(a) }

// name is the topic's name in reasons, with the broker if another has a topic of this name.
func (t *Topic) name() string {
	switch {
	case t.whole != nil:
		return t.whole.name()
	case t.Namesake:
		return t.Topic + " at " + t.Broker
	}
	return t.Topic
}

// NameOf is what a reason calls a group.
func (t *Topic) NameOf(g *Group) string {
	if g.Group == "" {
		return t.name()
	}
	return t.name() + ", " + g.Group
}

// accountCount is a count of the account, and what keeps it from being known.
type accountCount struct {
	count func(*Account) uint64
	doubt func(*Account) string
	// copies: it is of copies, which only what was received can have.
	copies bool
}

var accountCounts = map[string]accountCount{
	"lost":        {func(a *Account) uint64 { return a.Lost }, certain, false},
	"undelivered": {func(a *Account) uint64 { return a.Undelivered }, certain, false},
	"uncertain":   {func(a *Account) uint64 { return a.Uncertain }, expecting, false},
	"drained":     {func(a *Account) uint64 { return a.Drained }, expecting, false},
	"duplicated":  {func(a *Account) uint64 { return a.Duplicated }, receiving, true},
	"reordered":   {func(a *Account) uint64 { return a.Reordered }, ordered, true},
	"redelivered": {func(a *Account) uint64 { return a.Redelivered }, receiving, true},
}

// certain: what is missing must be known to be lost, or to be at the broker.
func certain(a *Account) string {
	switch {
	case a.Doubted > 0 && a.Doubted == a.Uncertain:
		return fmt.Sprintf("of %d messages it cannot be told whether they are lost, or a consumer that came or left just then was not there for them", a.Doubted)
	case a.Uncertain > 0:
		return fmt.Sprintf("of %d messages it cannot be told whether they are lost, still at the broker, or removed by the test itself", a.Uncertain)
	case a.Elsewhere > 0:
		return fmt.Sprintf("%d messages were received by a process of the test whose result is not here, or at another topic by a group of the same name, or lost", a.Elsewhere)
	}
	return expecting(a)
}

// expecting: what is to be missed must have been expected.
func expecting(a *Account) string {
	if a.Expected == 0 {
		return "no message was expected, so that none could be missed"
	}
	return ""
}

// NoOrder is why it is not known which messages were reordered.
const NoOrder = "not observed: the broker delivers messages out of their order because of a priority, a delay or a requeue"

// ordered: what is reordered shows only where there is an order.
func ordered(a *Account) string {
	if a.Unordered {
		return NoOrder
	}
	return receiving(a)
}

// receiving: what is wrong with messages shows only where some arrive.
func receiving(a *Account) string {
	if a.Group == ReadBack {
		return NoCopies
	}
	if a.Received+a.Drained == 0 {
		return "nothing was received"
	}
	return ""
}
