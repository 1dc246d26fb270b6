// Package coordinator lets the processes of one test meet. They wait for each other at named
// points, compare their clocks with the coordinator's, and send it their results, by plain HTTP.
package coordinator

import "time"

// Hello is the request of a process that joins.
type Hello struct {
	Run      string `json:"run"`      // the name of the test; "" to take the coordinator's
	Name     string `json:"name"`     // of the process, for people
	Instance uint32 `json:"instance"` // a random number of the process
	Index    int    `json:"index"`    // of the process, from 0; -1 to take the coordinator's
	Segment  string `json:"segment,omitempty"`
	Sequence string `json:"sequence,omitempty"` // the ends of all execution segments
	Load     string `json:"load,omitempty"`     // of a process with a segment: it must be the same in all
}

// Welcome is the answer to a process that joins.
type Welcome struct {
	Run       string `json:"run"`
	Index     int    `json:"index"`
	Processes int    `json:"processes"`
}

// arrival reports that a process is at a point, or asks whether all are.
type arrival struct {
	Instance uint32 `json:"instance"`
	Point    string `json:"point"`
}

// answer reports whether all processes are at a point.
type answer struct {
	Reached bool     `json:"reached"`
	At      int64    `json:"at"`      // the common time of the point, by the coordinator's clock
	Missing []string `json:"missing"` // processes that never came
}

// RefusedError is an answer that a repetition would not change.
type RefusedError struct {
	Code int // of HTTP
	Text string
}

// Error returns the coordinator's text.
func (e *RefusedError) Error() string { return e.Text }

const (
	// lead is the time from the arrival of the last process at a point to the time that counts.
	// Until then all processes have the answer.
	lead = 250 * time.Millisecond

	// poll is the longest time for which the coordinator holds a question.
	poll = 20 * time.Second

	// away is the time without a connection after which a process counts as ended.
	away = 10 * time.Second

	// mostRequest is the limit of the body of a request, in bytes.
	mostRequest = 1 << 20

	// MostUpload is the limit of the results of a process, in bytes.
	MostUpload = 4 << 30
)
