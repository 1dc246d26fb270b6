package sweep

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

// bench runs cells without any process: it notes which, and leaves their results where a runner does.
type bench struct {
	t      *testing.T
	folder string
	ran    []int
	become func(c Cell, o *Outcome) // what becomes of a cell that is not as it should be
	at     time.Time
}

func (b *bench) run(_ context.Context, c Cell) (Outcome, error) {
	b.ran = append(b.ran, c.Index)
	b.at = b.at.Add(time.Minute)
	o := Outcome{Cell: c, Started: b.at, Ended: b.at.Add(30 * time.Second), Result: measured(1000+float64(c.Index), 1e6)}
	if b.become != nil {
		b.become(c, &o)
	}
	if o.Result != nil {
		f := report.Folder{Dir: filepath.Join(b.folder, CellsFolder), Name: c.Folder, Overwrite: true}
		if err := f.Write(o.Result, nil); err != nil {
			b.t.Error(err)
		}
	}
	return o, nil
}

func (b *bench) sweep(j *Journal, p Plan, columns []measure.Measure) (*Sweep, *bytes.Buffer) {
	var out bytes.Buffer
	return &Sweep{Plan: p, Columns: columns, Folder: b.folder, Journal: j, Run: b.run, Out: &out, now: func() time.Time { return b.at }}, &out
}

func readCSV(t *testing.T, folder string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, TableFile))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// closed ends the work on a study, as the end of its process does.
func closed(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// A study that is stopped after its third cell, and cut in a later one, goes on from there: each cell that has a result is run once, and in the end everything is as if it had never been stopped.
func TestAStudyGoesOn(t *testing.T) {
	b := &bench{t: t, folder: filepath.Join(t.TempDir(), "study"), at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	p, columns := planOf(t, 2, 5, "RATE=1,2", "SIZE=1,2"), columnsOf(t, "confirmed rate", "lost")
	j, err := Begin(b.folder, p.Asked())
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	b.become = func(c Cell, _ *Outcome) {
		if c.Index == 3 {
			close(stop)
		}
	}
	s, out := b.sweep(j, p, columns)
	if _, err := s.Do(t.Context(), stop); !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	if lines := readCSV(t, b.folder); len(lines) != 4 {
		t.Errorf("%d lines of three cells", len(lines))
	}
	if text := out.String(); !strings.Contains(text, "[3/8] repetition 1 of 2: ") || !strings.Contains(text, "about 3m0s left, until 03:09") || !strings.Contains(text, "confirmed rate 1002/s") {
		t.Error(text)
	}

	b.become = func(c Cell, o *Outcome) {
		switch c.Index {
		case 5:
			o.Result, o.Error, o.ExitCode = nil, "the broker was away", 107
		case 7:
			o.Result, o.Error, o.Cut = nil, "it was ended", true
		}
	}
	closed(t, j)
	if j, err = Resume(b.folder, p.Asked()); err != nil {
		t.Fatal(err)
	}
	s, out = b.sweep(j, p, columns)
	if failed, err := s.Do(t.Context(), nil); !errors.Is(err, ErrStopped) || failed != 1 {
		t.Fatal(failed, err)
	}
	if text := out.String(); !strings.Contains(text, "3 of them are done") || !strings.Contains(text, "FAILED: the broker was away") || strings.Contains(text, "[3/8]") {
		t.Error(text)
	}
	lines := readCSV(t, b.folder)
	if failed := lines[5]; len(lines) != 7 || failed[0] != "5" || failed[len(failed)-1] != "the broker was away" || failed[6] != "" {
		t.Error(lines)
	}

	b.become = nil
	closed(t, j)
	if j, err = Resume(b.folder, p.Asked()); err != nil {
		t.Fatal(err)
	}
	s, _ = b.sweep(j, p, columns)
	if failed, err := s.Do(t.Context(), nil); err != nil || failed != 0 {
		t.Fatal(failed, err)
	}
	if want := []int{1, 2, 3, 4, 5, 6, 7, 5, 7, 8}; !slices.Equal(b.ran, want) {
		t.Errorf("ran %v, want %v", b.ran, want)
	}
	lines = readCSV(t, b.folder)
	if head := strings.Join(lines[0], ","); head != "cell,repetition,started,seconds,RATE,SIZE,confirmed rate (/s),lost,valid,confirmed means,exit code,error" {
		t.Error(head)
	}
	for i, index := range []string{"1", "2", "3", "4", "6", "5", "7", "8"} { // in the order of time
		line := lines[i+1]
		if rate, err := strconv.ParseFloat(line[6], 64); err != nil || strconv.FormatFloat(rate, 'f', 6, 64) != "100"+index+".000000" {
			t.Errorf("rate %s, %v", line[6], err)
		}
		if line[0] != index || line[7] != "" || line[8] != "true" || line[9] != "accepted" || line[3] != "30.0" {
			t.Errorf("%v", line)
		}
	}
	page, err := os.ReadFile(filepath.Join(b.folder, PageFile))
	if err != nil || !strings.Contains(string(page), "8 of 8 cells") || strings.Count(string(page), `">log</a>`) != 8 {
		t.Errorf("%v", err)
	}
}

// What is there is not written over, and what is another study is not gone on with: the error names what differs.
func TestAFolderThatIsTaken(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "deep", "study")
	asked := []Fact{{"script", "a.js"}, {"--set RATE", "1, 2"}, {"--zip", "A,B"}}
	j, err := Begin(folder, asked)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(folder, asked); !errors.Is(err, ErrTaken) {
		t.Error(err)
	}
	if _, err := Resume(folder, asked); err == nil || !strings.HasPrefix(err.Error(), "another process is at work on the study in "+folder) {
		t.Error(err)
	}
	closed(t, j)
	if j, err = Resume(folder, asked); err != nil {
		t.Fatal(err)
	}
	closed(t, j)
	_, err = Resume(folder, []Fact{{"script", "a.js"}, {"--set RATE", "1, 3"}, {"--set SIZE", "5"}})
	if err == nil || !strings.HasSuffix(err.Error(), "--set RATE: it was 1, 2, and is 1, 3; --set SIZE: it was nothing, and is 5; --zip: it was A,B, and is not given") {
		t.Error(err)
	}
	if _, err := Resume(filepath.Dir(folder), asked); err == nil || !strings.Contains(err.Error(), "there is no study") {
		t.Error(err)
	}
	for text, want := range map[string]string{"{": "damaged", `{"version":7}`: "of version 7"} {
		if err := os.WriteFile(filepath.Join(folder, JournalFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Resume(folder, asked); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

// A cell whose results somebody has removed is run again.
func TestResultsThatAreGone(t *testing.T) {
	b := &bench{t: t, folder: filepath.Join(t.TempDir(), "study")}
	p := planOf(t, 1, 5, "RATE=1,2,3")
	j, err := Begin(b.folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := b.sweep(j, p, columnsOf(t, "confirmed rate"))
	if _, err := s.Do(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(b.folder, CellsFolder, p.Cells()[1].Folder)); err != nil {
		t.Fatal(err)
	}
	s, _ = b.sweep(j, p, columnsOf(t, "confirmed rate"))
	if _, err := s.Do(t.Context(), nil); err != nil || !slices.Equal(b.ran, []int{1, 2, 3, 2}) {
		t.Error(b.ran, err)
	}
}

// Combinations of which confirmations proved another thing are in groups of their own, with a ranking each; what is not valid, or failed, is in none.
func TestWhatIsCompared(t *testing.T) {
	p, columns := planOf(t, 2, 5, "URL=a,b", "RATE=1,2,3"), columnsOf(t, "confirmed rate", "publish_latency p50", "lost")
	rows := rowsOf(p.Cells(), columns, func(_ int, c Cell) *result.Result {
		r := measured(map[string]float64{"1": 100, "2": 200, "3": 300}[c.Settings.Of("RATE")], 1e6)
		if c.Settings.Of("URL") == "b" {
			r.Topics[0].Proofs = nil
			r.Topics[0].Proves(result.Proof{Confirm: "unconfirmed", How: "nothing is confirmed"})
			r.Verdict.Valid = c.Settings.Of("RATE") != "3" || c.Repetition == 2
		}
		return r
	})
	for i, r := range rows {
		if r.Cell.Settings.String() == "URL=a RATE=1" {
			rows[i] = NewRow(Outcome{Cell: r.Cell, Error: "away", Started: r.Started, Ended: r.Ended}, columns)
		}
	}
	groups, failed := GroupsOf(p.Combinations(), columns, rows)
	if len(failed) != 1 || failed[0].Settings.String() != "URL=a RATE=1" || failed[0].Failed != 2 {
		t.Errorf("%+v", failed)
	}
	var got []string
	for _, g := range groups {
		for _, e := range g.Entries {
			got = append(got, g.Confirm+" "+e.Settings.String())
		}
		got = append(got, bestOf(0, columns[0], g.Entries))
	}
	want := []string{
		"accepted URL=a RATE=2", "accepted URL=a RATE=3", "greatest confirmed rate: 300/s at URL=a RATE=3",
		"unconfirmed URL=b RATE=1", "unconfirmed URL=b RATE=2", "unconfirmed URL=b RATE=3", "greatest confirmed rate: 200/s at URL=b RATE=2", // 3 was not always valid
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	var page bytes.Buffer
	f := Findings{Name: "groups", Plan: p, Columns: columns, Rows: rows}
	if err := f.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	accepted, unconfirmed := strings.Index(text, "Confirmed means accepted"), strings.Index(text, "Confirmed means unconfirmed")
	if accepted < 0 || unconfirmed < accepted || !strings.Contains(text, "there are 2 groups") {
		t.Error("the page does not keep the groups apart")
	}
	if part := text[accepted:unconfirmed]; strings.Contains(part, `<td class="text" data-label="URL">b</td>`) || strings.Count(part, `class="h`) == 0 {
		t.Error("a group has what is another's")
	}
}

// What proved the same by other means is in a group of its own, too; so are the repetitions of one combination that did.
func TestWhatProvedItOtherwiseIsNotCompared(t *testing.T) {
	p, columns := planOf(t, 4, 5, "STORAGE=memory,file"), columnsOf(t, "confirmed rate")
	rows := rowsOf(p.Cells(), columns, func(_ int, c Cell) *result.Result {
		r, how := measured(100, 1e6), c.Settings.Of("STORAGE")
		if c.Repetition == 4 {
			r, how = measured(900, 1e6), "memory" // whatever was asked for
		}
		r.Topics[0].Proofs = nil
		r.Topics[0].Proves(result.Proof{Confirm: "accepted", How: how})
		return r
	})
	groups, _ := GroupsOf(p.Combinations(), columns, rows)
	var got []string
	for _, g := range groups {
		for _, e := range g.Entries {
			got = append(got, fmt.Sprintf("%s, %s: %d, %v", g.Meaning, e.Settings, len(e.Cells), math.Round(e.Columns[0].Median)))
		}
	}
	if want := []string{"accepted: file, STORAGE=file: 3, 100", "accepted: memory, STORAGE=memory: 4, 100", "accepted: memory, STORAGE=file: 1, 900"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Columns that somebody has asked for are shown though nothing is known of them; and of how many repetitions a median is, where it is not of all.
func TestWhatIsKnownOfSomeOnly(t *testing.T) {
	p, columns := planOf(t, 4, 5, "RATE=1,2"), columnsOf(t, "publish_latency p50", "request_latency p99")
	rows := rowsOf(p.Cells(), columns, func(_ int, c Cell) *result.Result {
		r := measured(100, 1e6*float64(c.Repetition))
		if c.Repetition > 2 {
			r.Topics[0].Trends = nil
		}
		return r
	})
	for _, named := range []bool{false, true} {
		var page bytes.Buffer
		if err := (Findings{Plan: p, Columns: columns, Rows: rows, Named: named}).WriteHTML(&page); err != nil {
			t.Fatal(err)
		}
		if text := page.String(); strings.Contains(text, "request_latency p99") != named || !strings.Contains(text, " of 2 of 4<") {
			t.Errorf("asked for %v: there %v, and of how many is told: %v", named, !named, strings.Contains(text, " of 2 of 4<"))
		}
	}
	s := Sweep{Columns: columns, Named: true}
	if text := s.told(rows[0]); !strings.Contains(text, "request_latency p99 – (no request_latency was measured)") {
		t.Error(text)
	}
	rows[0].Valid, rows[0].Verdict, rows[0].Reasons = false, "NOT VALID", "sends-failed"
	if text := s.told(rows[0]); !strings.HasSuffix(text, "NOT VALID (sends-failed)") {
		t.Error(text)
	}
}

// Curves are over the axis of numbers, with the least and the greatest of the repetitions; a setting of no numbers has places.
func TestCurves(t *testing.T) {
	p, columns := planOf(t, 3, 5, "URL=a,b", "RATE=10,20,1000"), columnsOf(t, "publish_latency p50")
	rows := rowsOf(p.Cells(), columns, func(_ int, c Cell) *result.Result { return measured(1, 1e6*float64(c.Repetition)) })
	groups, _ := GroupsOf(p.Combinations(), columns, rows)
	axes, err := p.Axes()
	if err != nil {
		t.Fatal(err)
	}
	over, others, ok := curvesOver(axes)
	if !ok || over.Label() != "RATE" || len(others) != 1 {
		t.Fatal(over, others, ok)
	}
	c, known := curves("id", 0, columns[0], over, others, groups[0].Entries)
	if !known || len(c.Lines) != 2 || c.Lines[1].Label != "URL=b" || !slices.Equal(c.X, []float64{10, 20, 1000}) || !c.Decades || c.Apart || c.Unit != "ms" {
		t.Fatalf("%+v", c)
	}
	for i := range c.X {
		if l := c.Lines[1]; *l.Low[i] > 1.01 || *l.Low[i] < 0.99 || *l.Values[i] > 2.01 || *l.Values[i] < 1.99 || *l.High[i] > 3.01 || *l.High[i] < 2.99 {
			t.Errorf("%v %v %v", *l.Low[i], *l.Values[i], *l.High[i])
		}
	}
	c, _ = curves("id", 0, columns[0], axes[0], axes[1:], groups[0].Entries)
	if !c.Apart || !slices.Equal(c.X, []float64{0, 1}) || !slices.Equal(c.Ticks, []string{"a", "b"}) || len(c.Lines) != 3 {
		t.Errorf("%+v", c)
	}
	many := planOf(t, 1, 1, "A=a,b,c,d,e,f,g,h,i", "B=1,2,3,4,5,6,7,8,9")
	axes, _ = many.Axes()
	if over, _, ok := curvesOver(axes); ok {
		t.Error("curves without colours of their own, over", over)
	}
}

// What is nearly equal has one shade; the least has the faintest and the greatest the strongest, and one extreme does not make all the others alike.
func TestShades(t *testing.T) {
	p, columns := planOf(t, 1, 5, "A=0,1", "B=0,1"), columnsOf(t, "confirmed rate")
	for want, rates := range map[string][4]float64{"h1 h1 h5 h8": {500, 501, 800, 1000}, "h1 h2 h5 h8": {10, 20, 300, 5000}} {
		rows := rowsOf(p.Cells(), columns, func(_ int, c Cell) *result.Result {
			return measured(rates[2*strings.Index("01", c.Settings.Of("A"))+strings.Index("01", c.Settings.Of("B"))], 1e6)
		})
		groups, _ := GroupsOf(p.Combinations(), columns, rows)
		axes, _ := p.Axes()
		h, ok := heatOf(0, columns[0], axes[0], axes[1], groups[0].Entries)
		if got := strings.Join([]string{h.Rows[0].Cells[0].Class, h.Rows[0].Cells[1].Class, h.Rows[1].Cells[0].Class, h.Rows[1].Cells[1].Class}, " "); !ok || got != want {
			t.Errorf("%v: %s, want %s", rates, got, want)
		}
	}
}
