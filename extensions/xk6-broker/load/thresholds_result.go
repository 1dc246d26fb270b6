package load

// Threshold is one of the script's thresholds, and whether it held.
type Threshold struct {
	Metric string   `json:"metric"` // its name, with the tags of a submetric
	Source string   `json:"source"` // as the script gives it: "p(99)<50"
	Held   bool     `json:"held"`
	Judged bool     `json:"judged"` // there was something to judge it by
	Value  *float64 `json:"value"`  // what it was compared with, in the metric's unit; nil where there is none
	Why    string   `json:"why"`    // what a reader must know of it; "" for nothing
}
