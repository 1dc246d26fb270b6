package load

import (
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func TestARunThatDidNothingButFailIsNotValid(t *testing.T) {
	failed := TopicResult{
		Topic: "orders", Counts: map[string]int64{},
		Errors: []ErrorCount{{Op: "connect", Kind: driver.Denied, Count: 1}},
	}
	r := &Result{Topics: []TopicResult{failed}}
	r.Judge(Circumstances{})
	if r.Verdict.Valid || len(r.Verdict.Reasons) != 1 || !strings.Contains(r.Verdict.Reasons[0], "orders: nothing was sent") {
		t.Errorf("%+v", r.Verdict)
	}
	for _, counter := range []Counter{Sent, Received} {
		failed.Counts = map[string]int64{counter.String(): 1}
		r.Topics = []TopicResult{failed}
		if r.Judge(Circumstances{}); !r.Verdict.Valid {
			t.Errorf("%v: %+v", counter, r.Verdict)
		}
	}
}
