package main

import (
	"encoding/json"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
)

// quantile reads a histogram as results carry it, and gives a quantile in milliseconds.
func quantileOf(t testing.TB, text json.RawMessage, q float64) float64 {
	t.Helper()
	var h hist.Histogram
	if err := json.Unmarshal(text, &h); err != nil {
		t.Fatal(err)
	}
	return float64(h.Quantile(q)) / 1e6
}
