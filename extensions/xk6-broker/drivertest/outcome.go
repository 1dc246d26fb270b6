package drivertest

import (
	"encoding/json"
	"os"
	"sync"
	"testing"
)

// Outcome is what the kit found of one driver on one server. Run appends it, as a line of JSON, to the file that the environment's
// BROKER_CONFORMANCE names.
type Outcome struct {
	Driver     string   `json:"driver"`
	On         string   `json:"on,omitempty"` // see [Harness.On]
	Passed     int      `json:"passed"`
	Failed     int      `json:"failed"`
	NotClaimed int      `json:"notClaimed"` // what the driver does not claim, and where it was to be refused was
	NotProven  []string `json:"notProven"`  // tests that this server or machine gave no means for
}

var unproven sync.Map // of the *testing.T that had no means

// notProven skips the test for want of means.
func notProven(t *testing.T, why string) {
	t.Helper()
	unproven.Store(t, true)
	t.Skip("not proven: " + why)
}

// note counts a test that has ended.
func (o *Outcome) note(t *testing.T, name string) {
	_, wanting := unproven.LoadAndDelete(t)
	switch {
	case t.Failed():
		o.Failed++
	case wanting:
		o.NotProven = append(o.NotProven, name)
	case t.Skipped():
		o.NotClaimed++
	default:
		o.Passed++
	}
}

// write appends the outcome to the file.
func (o *Outcome) write(t *testing.T) {
	path := os.Getenv("BROKER_CONFORMANCE")
	if path == "" {
		return
	}
	line, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //gosec:disable G302 G304 G703 -- anybody may read it
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // the write is checked
	if _, err := f.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}
