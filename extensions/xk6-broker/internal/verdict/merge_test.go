package verdict

import (
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// What the processes have read back of a store adds up, though no ledger knows of it.
func TestWhatIsReadBackAddsUp(t *testing.T) {
	started := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	part := func(instance uint32, confirmed, lost uint64) Part {
		g := result.Group{Account: account.Account{Group: account.ReadBack, Tally: account.Tally{Expected: confirmed, Drained: confirmed - lost, Missing: lost}, Lost: lost}}
		topic := result.Topic{
			Driver: "memory", Topic: "metrics", OnlySends: true, ClosedLoop: true, Groups: []result.Group{g}, Trends: map[string]*hist.Histogram{},
			Counts: counted(map[recording.Counter]int64{recording.Sent: int64(confirmed), recording.Confirmed: int64(confirmed), recording.Unaccounted: int64(confirmed)}),
		}
		r := &result.Result{Name: "p", Run: 1, Instance: instance, Started: started, Seconds: 1, Topics: []result.Topic{topic}}
		return Part{Result: r, Ledger: &account.Ledger{Run: 1, Instance: instance}, Recording: &recording.Recording{}}
	}
	merged, err := Merge([]Part{part(1, 100, 3), part(2, 50, 4)}, Siblings{})
	if err != nil {
		t.Fatal(err)
	}
	topic := merged.Topics[0]
	if !topic.OnlySends || len(topic.Groups) != 1 {
		t.Fatalf("%+v", topic)
	}
	if g := topic.Groups[0]; g.Group != account.ReadBack || g.Expected != 150 || g.Drained != 143 || g.Lost != 7 {
		t.Errorf("%+v", g.Account)
	}
	if total := Total(merged); !total.OnlySends || total.Groups[0].Group != account.ReadBack || total.Groups[0].Lost != 7 {
		t.Errorf("%+v", total.Groups)
	}
	Judge(merged, Circumstances{})
	if v := merged.Verdict; reasontest.Has(v.Reasons, "drained") || !reasontest.Has(v.Notes(), "lost count=7 total=150") {
		t.Errorf("%+v", v.Reasons)
	}
}
