// Package collect brings the results of a test's processes together: each sends its own over HTTP when it ends, and a collector receives them into
// folders, as the processes write them.
package collect

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
)

// Process is what a process says of itself.
type Process struct {
	Run       string `json:"run"`                // the name of the test
	Name      string `json:"name"`               // of its results
	Instance  uint32 `json:"instance"`           // no other process has it
	Processes int    `json:"processes"`          // of the test; 0 where it does not know
	Segment   string `json:"segment,omitempty"`  // its execution segment, where it has one
	Sequence  string `json:"sequence,omitempty"` // of those of all processes
}

// String names the process as far as somebody who looks for it knows it.
func (p Process) String() string {
	if p.Segment != "" {
		return fmt.Sprintf("%s (execution segment %s)", p.Name, p.Segment)
	}
	return p.Name
}

// The parts of an address: /v1/processes/NAME?run=... is what a process says while it goes on, and /v1/processes/NAME/results?... where its results go.
func (p Process) query() string {
	return url.Values{
		"run": {p.Run}, "instance": {strconv.FormatUint(uint64(p.Instance), 10)}, "processes": {strconv.Itoa(p.Processes)}, "segment": {p.Segment}, "sequence": {p.Sequence},
	}.Encode()
}

var errProcess = errors.New("the address does not say which process it is")

func processOf(name string, query url.Values) (Process, error) {
	instance, err := strconv.ParseUint(query.Get("instance"), 10, 32)
	processes, err2 := strconv.Atoi(query.Get("processes"))
	p := Process{
		Run: query.Get("run"), Name: name, Instance: uint32(instance), Processes: processes, Segment: query.Get("segment"), Sequence: query.Get("sequence"),
	}
	if err != nil || err2 != nil || p.Run == "" || processes < 0 {
		return p, errProcess
	}
	return p, nil
}
