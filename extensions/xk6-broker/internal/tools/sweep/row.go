package sweep

import (
	"cmp"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Row is what a study shows of a cell: the numbers of its columns, and what its result says of itself.
type Row struct {
	Cell     Cell
	Error    string // why there is no result; nothing of what follows is known then
	ExitCode int
	Started  time.Time
	Ended    time.Time
	Numbers  []Number // of the columns
	Confirm  string   // the least that a confirmation proved; "" where nothing was sent
	Meaning  string   // the same, in words
	Valid    bool
	Verdict  string // in a word or two
	Reasons  string // the codes of why not
	Others   string // what came in besides the test's own messages; "" where nothing did
}

// Number is a column of a cell.
type Number struct {
	Value float64
	Known bool
	Why   string // it is not known
	Doubt string // why it should not be relied on
}

// NewRow reads the columns of an outcome.
func NewRow(o Outcome, columns []measure.Measure) Row {
	row := Row{Cell: o.Cell, Error: o.Error, ExitCode: o.ExitCode, Started: o.Started, Ended: o.Ended, Numbers: make([]Number, len(columns))}
	r := o.Result
	if r == nil {
		for i := range row.Numbers {
			row.Numbers[i].Why = o.Error
		}
		return row
	}
	for i, c := range columns {
		v, err := c.OfRun(r)
		if err != nil {
			row.Numbers[i].Why = err.Error()
			continue
		}
		low, high := c.DoubtOfRun(r)
		row.Numbers[i] = Number{Value: v, Known: true, Doubt: cmp.Or(low, high)}
	}
	row.Confirm, row.Meaning = Proof(r)
	row.Valid, row.Verdict, row.Reasons = r.Verdict.Valid, report.Validity(r.Verdict), reason.Codes(r.Verdict.Invalid())
	for _, n := range r.Verdict.Notes() {
		if n.Code == reason.Foreign && n.Word("why") == "messages" {
			row.Others = reason.Text(n)
		}
	}
	return row
}

// Proof is the least that a confirmation proved in a run, on any topic, and the same in words.
func Proof(r *result.Result) (confirm, meaning string) {
	var all result.Topic
	for i := range r.Topics {
		all.Proves(r.Topics[i].Proofs...)
	}
	return all.Confirm, all.Meaning()
}
