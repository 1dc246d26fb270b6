package result

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// What comes again unasked, while messages wait in the client, is told of: the broker lends them for less than that.
func TestLentForTooShort(t *testing.T) {
	for name, c := range map[string]struct {
		wait     int64
		requeued int64
		again    uint64
		noted    bool
	}{
		"lent for too short":   {3e9, 0, 400, true},
		"given back":           {3e9, 390, 400, false},
		"a few":                {3e9, 0, 50, false},
		"nothing waited for":   {1e6, 0, 400, false},
		"more back than again": {3e9, 500, 400, false},
	} {
		wait := &hist.Histogram{}
		for range 1000 {
			wait.Record(c.wait)
		}
		topic := Topic{Topic: "t", Counts: counted(map[recording.Counter]int64{recording.Requeued: c.requeued}), Groups: []Group{{
			Account: account.Account{Tally: account.Tally{Received: 1000, Redelivered: c.again}}, Trends: map[string]*hist.Histogram{recording.DeliveryWait.String(): wait},
		}}}
		var v Verdict
		topic.judgeRepeats(&v, &topic.Groups[0])
		if noted := reasontest.Has(v.Notes(), "consumers-slower why=again"); noted != c.noted {
			t.Errorf("%s: %q", name, reasontest.Codes(v.Reasons))
		}
	}
}
