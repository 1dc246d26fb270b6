package faults

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// books are what a run with one topic and one group says of its messages.
type books struct {
	confirmed, failed                      int64
	expected, received, lost, undelivered  uint64
	drained, uncertain                     uint64
	unexpected, missing, duplicated, again uint64
}

// addsUp reads the books of a run that ended well, in which so many messages were sent, and checks that they balance: each was
// confirmed or failed as a kind that a broken broker explains, and each that was confirmed was received, is lost or undelivered.
func addsUp(t *testing.T, o harness.Outcome, r harness.Result, sent int64) books {
	t.Helper()
	if r.Code != 0 {
		t.Errorf("the run did not end well\n%v", r)
	}
	if len(o.Result.Topics) != 1 || len(o.Result.Topics[0].Groups) != 1 {
		t.Fatalf("not one topic with one group: %+v\n%v", o.Result.Topics, r)
	}
	topic := o.Result.Topics[0]
	g := topic.Groups[0]
	b := books{
		confirmed: topic.Counts["confirmed"],
		expected:  g.Expected, received: g.Received, lost: g.Lost, undelivered: g.Undelivered,
		drained: g.Drained, uncertain: g.Uncertain,
		unexpected: g.Unexpected, missing: g.Missing, duplicated: g.Duplicated, again: g.Redelivered,
	}
	for _, e := range topic.Errors {
		if e.Op != "send" {
			continue
		}
		b.failed += e.Count
		switch e.Kind {
		case "disconnected", "timeout", "not_found", "rejected", "throttled":
		default:
			t.Errorf("%d sends failed as %s\n%v", e.Count, e.Kind, r)
		}
	}
	t.Logf("%+v, errors %+v", b, topic.Errors)
	if topic.Counts["sent"] != sent || b.confirmed+b.failed != sent {
		t.Errorf("sent %d of %d, confirmed %d, failed %d: they do not add up\n%v", topic.Counts["sent"], sent, b.confirmed, b.failed, r)
	}
	if b.expected != uint64(b.confirmed) {
		t.Errorf("confirmed %d, expected to arrive %d\n%v", b.confirmed, b.expected, r)
	}
	// What failed may arrive all the same: the broker had it, and its answer was what got lost.
	if b.unexpected > uint64(b.failed) || b.expected+b.unexpected != b.received+b.drained+b.lost+b.undelivered+b.uncertain {
		t.Errorf("the accounting does not add up: %+v\n%v", b, r)
	}
	if k6 := o.Metrics["broker_lost"].Values["count"]; k6 != float64(b.lost) {
		t.Errorf("k6 counted %v lost, the result %d\n%v", k6, b.lost, r)
	}
	return b
}

func (b books) nothingLost(t *testing.T, r harness.Result) {
	t.Helper()
	if b.lost != 0 || b.undelivered != 0 || b.uncertain != 0 {
		t.Errorf("confirmed and not received: %+v\n%v", b, r)
	}
}
