package result

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine/summary"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// New returns the result of a run, without its verdict. A nil recording leaves out the measurements.
func New(s *summary.Run, rec *recording.Recording) *Result {
	r := &Result{
		Version: Version, Run: s.ID, Instance: s.Instance, Processes: s.Processes, Siblings: s.Siblings,
		Started: s.Started, Seconds: s.Elapsed.Seconds(), Test: Test{Scenarios: []Scenario{}},
		Thresholds: []Threshold{}, Checks: []Check{}, Marks: []Annotation{}, Topics: []Topic{},
	}
	if m := s.Machine; m != nil {
		r.Platform = &Platform{
			Hiccups: &hist.Histogram{}, Process: m.Process, Host: m.Host, Others: m.Others,
			Steal: m.Steal, Pressure: m.Pressure, GroupPressure: m.GroupPressure,
		}
	}
	for i := range s.Topics {
		r.Topics = append(r.Topics, newTopic(&s.Topics[i], s.Shared))
	}
	if rec != nil {
		r.Measure(rec)
		r.Topics = slices.DeleteFunc(r.Topics, func(t Topic) bool { return !t.Used() })
	}
	return r
}

// newTopic returns the result of one topic, without its measurements.
func newTopic(s *summary.Topic, shared bool) Topic {
	f := s.Address.Driver.Features
	t := Topic{
		Broker: s.Address.String(), Driver: s.Address.Driver.Name, Topic: s.Name, Info: Server(s.Info),
		OpenLoop: s.OpenLoop, ClosedLoop: s.ClosedLoop, Declared: s.Declared,
		OnlySends: f.Start == 0, HeldUnseen: f.HeldUnseen, Shared: shared,
		Proofs: []Proof{}, Options: s.Options, Counts: map[string]int64{},
		Errors: []ErrorCount{}, Trends: map[string]*hist.Histogram{}, Groups: []Group{},
	}
	for _, p := range s.Proofs {
		t.Proves(Proof(p))
	}
	for _, g := range s.Groups {
		t.Groups = append(t.Groups, Group{
			Account: g.Account, Members: g.Members, Trends: map[string]*hist.Histogram{},
			Strangers: g.Strangers,
		})
	}
	return t
}
