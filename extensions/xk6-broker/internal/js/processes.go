package js

import (
	"errors"
	"fmt"
	"strconv"
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
