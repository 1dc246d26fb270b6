package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// golden compares text with a file of testdata. The flag is defined by the package's other tests.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("not what %s holds; go test -update writes it anew. Got:\n%s", path, got)
	}
}

var embedded = regexp.MustCompile(`(?s)<script type="application/json" id="charts">(.*?)</script>`)

func page(t *testing.T) string {
	t.Helper()
	var text bytes.Buffer
	if err := report.HTML(&text, stalled()); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestTheDataOfThePage(t *testing.T) {
	found := embedded.FindStringSubmatch(page(t))
	if found == nil {
		t.Fatal("the page carries no data")
	}
	var charts []report.Chart
	if err := json.Unmarshal([]byte(found[1]), &charts); err != nil {
		t.Fatal(err)
	}
	for _, c := range charts {
		for _, l := range c.Lines {
			if len(l.Values) != len(c.X) {
				t.Errorf("%s, %s: %d values for %d x", c.ID, l.Label, len(l.Values), len(c.X))
			}
		}
	}
	var pretty bytes.Buffer
	encoder := json.NewEncoder(&pretty)
	encoder.SetEscapeHTML(false)
	for _, c := range charts { // a line for each chart's head and for each of its lines
		lines := c.Lines
		c.Lines = nil
		_ = encoder.Encode(c)
		for _, l := range lines {
			_ = encoder.Encode(l)
		}
	}
	golden(t, "charts.jsonl", pretty.Bytes())
}

// What a broker or a script named cannot become markup, and the page asks nothing of any other host.
func TestThePageIsSelfContained(t *testing.T) {
	text := page(t)
	body := text[strings.Index(text, "<body>"):]
	for _, wrong := range []string{"orders/</script>", "<b>processor"} {
		if strings.Contains(body, wrong) {
			t.Errorf("%q is in the page unescaped", wrong)
		}
	}
	if n := strings.Count(body, "</script>"); n != 3 {
		t.Errorf("%d scripts end, want 3", n)
	}
	if found := regexp.MustCompile(`(?i)(src|href|@import|url\()\s*=?\s*["']?https?:`).FindString(text); found != "" {
		t.Errorf("the page loads %q", found)
	}
	for _, want := range []string{
		"✗ NOT VALID", "k6 dropped 3 arrivals", `<td data-label="lost" data-value="2" class="bad"`, "8000000000000000", "***",
		"Leon Sorokin", "Permission is hereby granted", // whose script draws the charts
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in the page", want)
		}
	}
}

// A curve ends where fewer than 10 samples lie beyond it.
func TestCurvesEndWithTheirSupport(t *testing.T) {
	r := stalled()
	var charts []report.Chart
	if err := json.Unmarshal([]byte(embedded.FindStringSubmatch(page(t))[1]), &charts); err != nil {
		t.Fatal(err)
	}
	curves, h := charts[0], r.Topics[0].Trends["publish_latency"]
	drawn := 0
	for i, x := range curves.X {
		v := curves.Lines[0].Values[i]
		if beyond := float64(h.Count()) / x; (v != nil) != (beyond >= 10-1e-6) {
			t.Errorf("at 1/(1-p) = %v %v samples lie beyond, and the value is %v", x, beyond, v)
		}
		if v != nil {
			drawn++
		}
	}
	if drawn < 60 { // 20000 samples support 3.3 decades
		t.Errorf("%d points drawn", drawn)
	}
}
