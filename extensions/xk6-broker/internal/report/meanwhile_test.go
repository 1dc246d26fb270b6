package report_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// A process is killed when it has replaced its ledger and not its summary: what is merged of it is of the instant of the ledger, and
// its numbers are those of its recording.
func TestAProcessThatIsKilledBetweenTwoFiles(t *testing.T) {
	r := stalledFrom(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	f := report.Folder{Dir: t.TempDir(), Name: "killed"}.Meanwhile()
	write := func(n int64) {
		r.Dropped = uint64(n) //gosec:disable G115 -- a small number
		if err := f.WriteMeanwhile(r, &account.Ledger{Version: account.LedgerVersion, Run: r.Run, Instance: r.Instance, Ended: n}); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	summary := filepath.Join(f.Path(), report.SummaryFile)
	before, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	write(2)
	if err := os.WriteFile(summary, before, 0o600); err != nil {
		t.Fatal(err)
	}
	recorded := func(w io.Writer) error { return r.Recording.Write(w) }
	if err := report.WriteAtomic(filepath.Join(f.Path(), report.RecordingFile), recorded); err != nil {
		t.Fatal(err)
	}
	p, err := report.ReadPart(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	if n := p.Result.Dropped; n != 2 || p.Ledger.Ended != 2 || !p.Ledger.Unfinished || p.Result.Name != f.Name {
		t.Errorf("%s has dropped %d, and its ledger is of %d", p.Result.Name, n, p.Ledger.Ended)
	}
	if n := p.Result.Topics[0].Counts["received"]; n != 20_000 {
		t.Errorf("received %d", n)
	}
}
