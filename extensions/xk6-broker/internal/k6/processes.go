package k6

import (
	"errors"
	"fmt"
	"strconv"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// processesOf reads what the environment says of the processes of the test: the name that they share, "" where there is one process, and
// how many they are, 0 where it does not say.
func processesOf(lookup func(string) (string, bool)) (run string, processes int, err error) {
	run, _ = lookup("BROKER_RUN")
	text, ok := lookup("BROKER_PROCESSES")
	if !ok || text == "" {
		return run, 0, nil
	}
	if processes, err = strconv.Atoi(text); err != nil || processes < 1 {
		return run, 0, fmt.Errorf("BROKER_PROCESSES: %q is not a number of processes: give how many have this BROKER_RUN, 1 or more", text)
	}
	if run == "" {
		return run, 0, errors.New("BROKER_PROCESSES: the processes of a test need a name that they share: give them all one BROKER_RUN")
	}
	return run, processes, nil
}

// segments gives the execution segments of a test's processes, each with all others, and which of them is this process's; one segment and 0 where nobody
// has divided the test.
func segments(es *lib.ExecutionState) (all []*lib.ExecutionTuple, index int) {
	et := es.ExecutionTuple
	for i := range et.Sequence.ExecutionSegmentSequence {
		all = append(all, et.Sequence.GetTuple(i))
	}
	return all, et.SegmentIndex
}

// placeOf is how many processes a test has and which of them this is, from 0, by the sequence of segments that was given; 0 and -1 where none was. Where there is
// only a segment k6 makes up a sequence, which says nothing of the processes.
func placeOf(es *lib.ExecutionState) (count, index int) {
	if es.Test.Options.ExecutionSegmentSequence == nil {
		return 0, -1
	}
	all, index := segments(es)
	return len(all), index
}

// join says what is known of the processes of the test when it begins: k6 tells no script earlier which execution segment it has.
func (r *run) join(es *lib.ExecutionState) {
	all, _ := segments(es)
	if len(all) == 1 {
		return
	}
	r.segment = &result.Segment{Of: es.ExecutionTuple.Segment.String(), Sequence: es.ExecutionTuple.Sequence.String(), Nameless: !r.shared}
	if count, index := placeOf(es); r.shared && count > 0 {
		if n, _ := r.Processes(); n != 0 && n != count {
			r.logger.Warnf("BROKER_PROCESSES says that the test has %d processes, and the sequence of execution segments that it has %d: without the others the whole is not valid", n, count)
		}
		r.Join(count, index)
	} else if r.shared {
		r.logger.Warnf("this process has the execution segment %v, and no --execution-segment-sequence, without which it does not know the other processes: "+
			"they do not wait for one another, and their clocks are not compared", es.ExecutionTuple.Segment)
	}
	if !r.shared {
		r.logger.Warnf("this process has the execution segment %v of the test, and no BROKER_RUN: it takes the messages of the other processes for those of "+
			"another test; give all of them one name", es.ExecutionTuple.Segment)
	}
	for _, c := range es.Test.Options.Scenarios.GetSortedConfigs() {
		if c.HasWork(es.ExecutionTuple) || executors.Ours(c) {
			continue
		}
		r.segment.Idle = append(r.segment.Idle, c.GetName())
		_, vus := totalVUs(c, all)
		r.logger.Warnf("scenario %s has no VU in this process, whose execution segment is %v: k6 divides the VUs of a scenario, and it has %d in all; "+
			"executor producers has one in each process, and divides what produce sends", c.GetName(), es.ExecutionTuple.Segment, vus)
	}
}

// totalVUs is how many VUs a scenario has in all processes, those included that may be added while it runs.
func totalVUs(c lib.ExecutorConfig, segments []*lib.ExecutionTuple) (planned, most uint64) {
	for _, et := range segments {
		steps := c.GetExecutionRequirements(et)
		planned += lib.GetMaxPlannedVUs(steps)
		most += lib.GetMaxPossibleVUs(steps)
	}
	return planned, most
}
