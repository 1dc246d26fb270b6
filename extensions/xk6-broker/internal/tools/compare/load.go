// Package compare measures runs against the first of them, and decides conditions for CI.
package compare

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Side is one run, or several runs that repeat the same test.
type Side struct {
	Name string
	Runs []*result.Result
}

// Title is the side's name with the number of its runs.
func (s Side) Title() string {
	if len(s.Runs) == 1 {
		return s.Name
	}
	return fmt.Sprintf("%s (%d runs)", s.Name, len(s.Runs))
}

// Load reads the sides: a folder is a side, name=folder,folder,... is a side of repetitions. With a
// phase, runs are read as they were in it.
func Load(args []string, phase string) ([]Side, error) {
	if len(args) < 2 {
		return nil, errors.New("compare: there must be two to compare; name repetitions name=folder,folder")
	}
	var sides []Side
	for _, arg := range args {
		name, list, named := strings.Cut(arg, "=")
		if !named {
			name, list = filepath.Base(filepath.Clean(arg)), arg
		}
		if name == "" || list == "" {
			return nil, fmt.Errorf("compare: %q: write a folder, or name=folder,folder", arg)
		}
		s := Side{Name: name}
		for path := range strings.SplitSeq(list, ",") {
			r, err := read(path, phase)
			if err != nil {
				return nil, fmt.Errorf("compare: %w", err)
			}
			s.Runs = append(s.Runs, r)
		}
		sides = append(sides, s)
	}
	return sides, nil
}

func read(path, phase string) (*result.Result, error) {
	r, err := report.Read(path)
	if err != nil || phase == "" {
		return r, err
	}
	if during := r.During(phase); during != nil {
		return during, nil
	}
	names := cmp.Or(strings.Join(r.PhaseNames(), ", "), "none")
	return nil, fmt.Errorf("%s has no phase %q: it has %s", path, phase, names)
}

// complete reports whether all runs have the topic.
func (t *Topic) complete() bool {
	return !slices.ContainsFunc(t.runs, func(topics []*result.Topic) bool { return slices.Contains(topics, nil) })
}

// topicsOf lists the topics of all runs by name. If every run has just one topic, these are one.
func topicsOf(sides []Side) (all []Topic) {
	single := true
	var names []string
	for _, s := range sides {
		for _, r := range s.Runs {
			single = single && len(r.Topics) == 1
			for _, t := range r.Topics {
				if !slices.Contains(names, t.Topic) {
					names = append(names, t.Topic)
				}
			}
		}
	}
	if single {
		names = names[:1]
	}
	for _, name := range names {
		t := Topic{Name: name, runs: make([][]*result.Topic, len(sides))}
		for i, s := range sides {
			for _, r := range s.Runs {
				t.runs[i] = append(t.runs[i], find(r, name, single))
			}
		}
		all = append(all, t)
	}
	return all
}

// find returns a topic by name, or the only one; nil if there is none.
func find(r *result.Result, name string, single bool) *result.Topic {
	i := slices.IndexFunc(r.Topics, func(t result.Topic) bool { return single || t.Topic == name })
	if i < 0 {
		return nil
	}
	return &r.Topics[i]
}
