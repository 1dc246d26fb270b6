// Package coordinator has the processes of one test meet: they wait for each other at named points, compare their clocks with the
// coordinator's, and send it their results. It is plain HTTP; the broker under test carries test messages only.
package coordinator

import "time"

// Hello is what a process says when it joins.
type Hello struct {
	Run      string `json:"run"`      // the name of the test; "" if the coordinator is to say it
	Name     string `json:"name"`     // of the process, for people
	Instance uint32 `json:"instance"` // a random number that no other process has
	Index    int    `json:"index"`    // of the process, from 0; -1 if the coordinator is to say it
	Segment  string `json:"segment,omitempty"`
	Sequence string `json:"sequence,omitempty"` // the ends of all execution segments
	Load     string `json:"load,omitempty"`     // what a process with a segment runs: it must be the same in all
}

// Welcome is the answer to a process that joins.
type Welcome struct {
	Run       string `json:"run"`
	Index     int    `json:"index"`
	Processes int    `json:"processes"`
}

// arrival says that a process has come to a point, or asks whether all have.
type arrival struct {
	Instance uint32 `json:"instance"`
	Point    string `json:"point"`
}

// answer is whether all processes have come that are there.
type answer struct {
	Reached bool     `json:"reached"`
	At      int64    `json:"at"`      // from which the point counts, by the coordinator's clock
	Missing []string `json:"missing"` // processes that never came
}

// lead is how long after the last process has come to a point it counts: by then all have heard of it, and have opened a connection.
const lead = 250 * time.Millisecond

// poll is how long the coordinator holds a question before it answers that it is not yet so.
const poll = 20 * time.Second

// away is how long a process may have no connection before it is taken to have ended.
const away = 10 * time.Second
