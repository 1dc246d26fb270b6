package js

import (
	"strings"
	"testing"
)

func TestArrivalsEndAndDoNotContradictEachOther(t *testing.T) {
	const endless = `it would never end: give "duration", "count", "stages" or "trace"`
	const both = "a trace has all the due times there are: give one of the two"
	s := newScript(t)
	s.mustRun(`globalThis.p = broker.connect('memory://h').producer('t')`)
	for options, want := range map[string]string{
		`{}`:                                                     endless,
		`{ rate: 5 }`:                                            endless,
		`{ rate: 5, arrivals: 'poisson' }`:                       endless,
		`{ rate: 5, duration: 0 }`:                               endless,
		`{ rate: 5, duration: '0s', count: 0 }`:                  endless,
		`{ rate: 5, stages: [] }`:                                endless,
		`{ trace: '0.1', rate: 5 }`:                              `produce: options "trace" and "rate": ` + both,
		`{ trace: '0.1', stages: [] }`:                           `options "trace" and "stages": ` + both,
		`{ trace: '0.1', startRate: 5 }`:                         `options "trace" and "startRate": ` + both,
		`{ trace: '0.1', arrivals: 'poisson' }`:                  `options "trace" and "arrivals": ` + both,
		`{ trace: '0.1', seed: 5 }`:                              `options "trace" and "seed": ` + both,
		`{ trace: '0.1', timeUnit: '1m' }`:                       `options "trace" and "timeUnit": ` + both,
		`{ trace: '0.1', colour: 'red' }`:                        `no option "colour"`,
		`{ rate: 5, duration: '1s' }`:                            errInInit.Error(), // nothing else is wrong with these
		`{ rate: 5, count: 1 }`:                                  errInInit.Error(),
		`{ duration: '1s' }`:                                     errInInit.Error(),
		`{ trace: '0.1' }`:                                       errInInit.Error(),
		`{ trace: '0.1', count: 1 }`:                             errInInit.Error(),
		`{ stages: [{ target: 5, duration: 1 }], startRate: 5 }`: errInInit.Error(),
	} {
		if _, err := s.run("await p.produce(" + options + ")"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", options, err, want)
		}
	}
}
