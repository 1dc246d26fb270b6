package report

import (
	"strings"
	"testing"
)

// Each label of the tables of latencies and fates has a meaning.
func TestGlossary_LabelsOfTables_HaveMeanings(t *testing.T) {
	for _, trend := range shownTrends {
		if meaning(trend.Label()) == "" {
			t.Errorf("no meaning of %q", trend.Label())
		}
	}
	for _, f := range fates {
		if meaning(f.name) == "" {
			t.Errorf("no meaning of %q", f.name)
		}
	}
}

func TestExplain_WordUnknown_Error(t *testing.T) {
	if text, err := Explain("Lost"); err != nil || !strings.Contains(text, "confirmed") {
		t.Error(text, err)
	}
	if _, err := Explain("lots"); err == nil || !strings.Contains(err.Error(), "lost") {
		t.Error(err)
	}
	if text, err := Explain(""); err != nil || strings.Count(text, "\n") != len(glossary)-1 {
		t.Error(text, err)
	}
}
