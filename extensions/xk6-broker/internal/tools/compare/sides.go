// Package compare draws runs over one another and says how they differ, and whether the difference is more than noise.
package compare

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Side is one of those that are compared: one run, or several that repeat the same test.
type Side struct {
	Name string
	Runs []*result.Result
}

// repetition is what the name of a repeated run ends with: -1, -2, or the time.
var repetition = regexp.MustCompile(`-(\d{1,3}|\d{8}T\d{6}Z(-\d{1,3})?)$`)

// Load reads the runs that the arguments name: a folder each, or name=folder,folder,... for repetitions of one. Folders whose names
// differ by nothing but a number or a time at the end are repetitions of one too, unless there is no other to compare them with.
// Where a phase is named, each is taken as it was in that phase. progress is told of each folder before it is read.
func Load(args []string, phase string, progress func(done, of int, path string)) ([]Side, error) {
	var sides []Side
	named, total, done := false, 0, 0
	for _, arg := range args {
		total += 1 + strings.Count(arg, ",")
	}
	for _, arg := range args {
		name, list, explicit := strings.Cut(arg, "=")
		if !explicit {
			name, list = repetition.ReplaceAllString(filepath.Base(filepath.Clean(arg)), ""), arg
		}
		if name == "" || list == "" {
			return nil, fmt.Errorf("compare: %q: write a folder, or name=folder,folder", arg)
		}
		named = named || explicit
		for path := range strings.SplitSeq(list, ",") {
			progress(done, total, path)
			done++
			r, err := report.Read(path)
			if err != nil {
				return nil, fmt.Errorf("compare: %w", err)
			}
			if phase != "" {
				names := strings.Join(r.PhaseNames(), ", ")
				if r = r.During(phase); r == nil {
					return nil, fmt.Errorf("compare: %s has no phase %q: it has %s", path, phase, cmp.Or(names, "none"))
				}
			}
			i := slices.IndexFunc(sides, func(s Side) bool { return s.Name == name })
			if i < 0 {
				i = len(sides)
				sides = append(sides, Side{Name: name})
			}
			sides[i].Runs = append(sides[i].Runs, r)
		}
	}
	if len(sides) == 1 && len(sides[0].Runs) > 1 && !named {
		sides = apart(args, sides[0].Runs)
	}
	if len(sides) < 2 {
		return nil, errors.New("compare: there must be two to compare; name repetitions name=folder,folder")
	}
	return sides, nil
}

// apart takes repetitions of one test for the sides.
func apart(args []string, runs []*result.Result) []Side {
	sides := make([]Side, len(runs))
	for i, path := range args {
		sides[i] = Side{Name: filepath.Base(filepath.Clean(path)), Runs: runs[i : i+1]}
	}
	return sides
}

// pairing is a topic as each side has it.
type pairing struct {
	name   string
	topics [][]*result.Topic // by side and repetition
}

// pair finds the topics that all runs have, by name or, where every run has just one, that one; and those that only some have.
func pair(sides []Side) (pairs, partly []pairing) {
	only := true
	for _, s := range sides {
		for _, r := range s.Runs {
			only = only && len(r.Topics) == 1
		}
	}
	var names []string
	for _, s := range sides {
		for _, r := range s.Runs {
			for _, t := range r.Topics {
				if !slices.Contains(names, t.Topic) {
					names = append(names, t.Topic)
				}
			}
		}
	}
	if only {
		names = names[:1]
	}
	for _, name := range names {
		p := pairing{name: name}
		everywhere := true
		for _, s := range sides {
			var topics []*result.Topic
			for _, r := range s.Runs {
				i := slices.IndexFunc(r.Topics, func(t result.Topic) bool { return only || t.Topic == name })
				if i < 0 {
					everywhere = false
					continue
				}
				topics = append(topics, &r.Topics[i])
			}
			p.topics = append(p.topics, topics)
		}
		if everywhere {
			pairs = append(pairs, p)
		} else {
			partly = append(partly, p)
		}
	}
	return pairs, partly
}
