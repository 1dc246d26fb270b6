package drivertest

import (
	"encoding/json"
	"os"
	"testing"
)

// Outcome counts the tests of one driver on one server. Run appends it, as a line of JSON, to the
// file that BROKER_CONFORMANCE names.
type Outcome struct {
	Driver     string   `json:"driver"`
	On         string   `json:"on,omitempty"` // see [Harness.On]
	Passed     int      `json:"passed"`
	Failed     int      `json:"failed"`
	NotClaimed int      `json:"notClaimed"` // skipped because the driver does not claim the feature
	NotProven  []string `json:"notProven"`  // tests that this server or machine has no means for
}

// count counts a test that has ended.
func (o *Outcome) count(k *kit, name string) {
	switch {
	case k.Failed():
		o.Failed++
	case k.unproven:
		o.NotProven = append(o.NotProven, name)
	case k.Skipped():
		o.NotClaimed++
	default:
		o.Passed++
	}
}

func (o *Outcome) write(t *testing.T) {
	path := os.Getenv("BROKER_CONFORMANCE")
	if path == "" {
		return
	}
	line, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //gosec:disable G302 G304 G703 -- a report
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // the write is checked
	if _, err := f.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}
