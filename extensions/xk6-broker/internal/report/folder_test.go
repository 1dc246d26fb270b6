package report_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

func encode(t testing.TB, r *result.Result) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := report.WriteSummary(&text, r); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func files(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestAFolderHoldsEverything(t *testing.T) {
	r := stalled()
	dir := filepath.Join(t.TempDir(), "made", "on demand")
	folder := report.Folder{Dir: dir, Name: "a"}
	if err := folder.Write(r, &account.Ledger{}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Orders___script_-2.publish_latency.hgrm", "Orders___script_-2.publish_latency.hlog", report.LedgerFile, report.RecordingFile, report.PageFile, report.SummaryFile,
	}
	for trend := range r.Topics[0].Trends {
		want = append(want, "orders___script_."+trend+".hgrm", "orders___script_."+trend+".hlog")
	}
	slices.Sort(want)
	if got := files(t, folder.Path()); !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
	if got := files(t, dir); !slices.Equal(got, []string{"a"}) {
		t.Errorf("drafts are left: %q", got)
	}
	read, err := report.Read(folder.Path())
	if err != nil {
		t.Fatal(err)
	}
	if !sameResult(t, r, read) {
		t.Error("what was read is not what was written")
	}
}

func TestResultsAreNotOverwrittenUnasked(t *testing.T) {
	dir := t.TempDir()
	first, second := stalled(), stalled()
	second.Name, second.Topics = "second", second.Topics[1:]
	if err := (report.Folder{Dir: dir, Name: "a"}).Write(first, nil); err != nil {
		t.Fatal(err)
	}
	before := files(t, filepath.Join(dir, "a"))
	err := report.Folder{Dir: dir, Name: "a"}.Write(second, nil)
	if !errors.Is(err, report.ErrExists) || !strings.Contains(err.Error(), "BROKER_REPORT_OVERWRITE") {
		t.Fatalf("error %v", err)
	}
	if got := files(t, filepath.Join(dir, "a")); !slices.Equal(got, before) {
		t.Errorf("files %q, were %q", got, before)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "report-peak.html"), nil, 0o600); err != nil { // of the command report
		t.Fatal(err)
	}
	if err := (report.Folder{Dir: dir, Name: "a", Overwrite: true}).Write(second, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"Orders___script_.publish_latency.hgrm", "Orders___script_.publish_latency.hlog", report.RecordingFile, report.PageFile, report.SummaryFile}
	if got := files(t, filepath.Join(dir, "a")); !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
	if read, err := report.Read(filepath.Join(dir, "a")); err != nil || read.Name != "second" {
		t.Errorf("read %v, %v", read, err)
	}
	if got := files(t, dir); !slices.Equal(got, []string{"a"}) {
		t.Errorf("drafts are left: %q", got)
	}
}

func TestOnlyResultsAreOverwritten(t *testing.T) {
	dir := t.TempDir()
	folder := report.Folder{Dir: dir, Name: "src", Overwrite: true}
	if err := folder.Write(stalled(), nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder.Path(), "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := folder.Write(stalled(), nil); !errors.Is(err, report.ErrExists) || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("a file that is no result was overwritten: %v", err)
	}
	for _, name := range []string{"", "..", "a/b", "-x", ".hidden", strings.Repeat("x", 200)} {
		if err := (report.Folder{Dir: dir, Name: name}).Check(); err == nil {
			t.Errorf("the name %q was accepted", name)
		}
	}
}

// A writer that fails leaves the file as it was, and nothing beside it.
func TestWriteAtomicIsAllOrNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "compare.html")
	if err := report.WriteAtomic(path, func(w io.Writer) error { _, err := w.Write([]byte("old")); return err }); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	err := report.WriteAtomic(path, func(w io.Writer) error {
		_, _ = w.Write([]byte("ne"))
		return failed
	})
	if text, _ := os.ReadFile(path); !errors.Is(err, failed) || string(text) != "old" {
		t.Errorf("error %v, text %q", err, text)
	}
	if got := files(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("files %q", got)
	}
}

func TestTheSchemaDescribesWhatIsWritten(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("summary.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	document := func(text []byte) any {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	text := encode(t, stalled())
	for _, right := range [][]byte{text, encode(t, warmed())} {
		if err := schema.Validate(document(right)); err != nil {
			t.Error(err)
		}
	}
	for _, wrong := range [][2]string{
		{`"version": 3`, `"version": 2`},
		{`"lost": 2`, `"lost": -2`},
		{`"seconds": 20,`, ``},
		{`"valid": false`, `"valid": "no"`},
		{`"supported": true`, `"supported": 1`},
		{`"p999"`, `"p998"`},
		{`"trends"`, `"trendz"`},
		{`"judged": true`, `"judged": 1`},
		{`"code": "percentile-not-reliable"`, `"code": "bad-luck"`},
	} {
		changed := strings.Replace(string(text), wrong[0], wrong[1], 1)
		if changed == string(text) {
			t.Errorf("there is no %s", wrong[0])
		} else if schema.Validate(document([]byte(changed))) == nil {
			t.Errorf("the schema takes %s", wrong[1])
		}
	}
	for row := range strings.Lines(reason.Markdown()) {
		code, isRow := strings.CutPrefix(row, "| `")
		if code, _, _ = strings.Cut(code, "`"); !isRow {
			continue
		}
		if err := schema.Validate(document([]byte(strings.Replace(string(text), "percentile-not-reliable", code, 1)))); err != nil {
			t.Errorf("the schema does not have the reason %s: %v", code, err)
		}
	}
}
