package result_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

var update = flag.Bool("update", false, "write what the parts say to expected.json")

// golden is expected.json: the account of a recorded test.
type golden struct {
	Towards string                 `json:"towards,omitempty"` // "uncertain": see mayBecome
	Valid   bool                   `json:"valid"`
	Topics  map[string]goldenTopic `json:"topics"`
}

type goldenTopic struct {
	Counts map[string]int64       `json:"counts"`
	Groups map[string]goldenGroup `json:"groups"`
}

type goldenGroup struct {
	Expected    uint64 `json:"expected"`
	Received    uint64 `json:"received"`
	Drained     uint64 `json:"drained"`
	Removed     uint64 `json:"removed"`
	Missing     uint64 `json:"missing"`
	Lost        uint64 `json:"lost"`
	Undelivered uint64 `json:"undelivered"`
	Uncertain   uint64 `json:"uncertain"`
	Elsewhere   uint64 `json:"elsewhere"`
	Settled     uint64 `json:"settled"`
	Duplicated  uint64 `json:"duplicated"`
	Redelivered uint64 `json:"redelivered"`
	Reordered   uint64 `json:"reordered"`
	Unexpected  uint64 `json:"unexpected"`
}

func goldenOf(r *result.Result) golden {
	all := golden{Valid: r.Verdict.Valid, Topics: map[string]goldenTopic{}}
	for _, t := range r.Topics {
		topic := goldenTopic{Counts: t.Counts, Groups: map[string]goldenGroup{}}
		for _, g := range t.Groups {
			topic.Groups[g.Group] = goldenGroup{
				g.Expected, g.Received, g.Drained, g.Removed, g.Missing, g.Lost, g.Undelivered, g.Uncertain, g.Elsewhere,
				g.Settled, g.Duplicated, g.Redelivered, g.Reordered, g.Unexpected,
			}
		}
		all.Topics[t.Topic] = topic
	}
	return all
}

// accountOf computes the result of all processes of a test. The account of one process is that of its summary.
func accountOf(parts []result.Part) (*result.Result, error) {
	if len(parts) == 1 {
		return parts[0].Result, nil
	}
	return result.Merge(parts, result.Siblings{})
}

// mayBecome reports whether a new account may take the place of an old one: it is equal or, if the old one goes towards uncertain,
// messages whose fate it knew are uncertain instead.
func mayBecome(old, now golden) bool {
	if old.Towards == "uncertain" {
		for name, topic := range old.Topics {
			for group, was := range topic.Groups {
				if is, ok := now.Topics[name].Groups[group]; ok && was.lessKnown(is) {
					topic.Groups[group] = is
				}
			}
		}
	}
	old.Towards = now.Towards
	return reflect.DeepEqual(old, now)
}

// lessKnown reports whether an account differs from the old one in messages only that have become uncertain.
func (was goldenGroup) lessKnown(is goldenGroup) bool {
	is.Missing -= was.Drained - is.Drained + was.Removed - is.Removed
	for _, fate := range []struct{ was, is *uint64 }{
		{&was.Lost, &is.Lost}, {&was.Undelivered, &is.Undelivered}, {&was.Drained, &is.Drained}, {&was.Removed, &is.Removed}, {&was.Elsewhere, &is.Elsewhere},
	} {
		if *fate.is > *fate.was {
			return false
		}
		is.Uncertain -= *fate.was - *fate.is
		*fate.is = *fate.was
	}
	return was == is
}

// Each folder has the recorded results of a test's processes. testdata/golden/scripts/record makes them.
func TestGoldenAccounts(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*/1/summary.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d folders, %v", len(files), err)
	}
	for _, file := range files {
		folder := filepath.Dir(filepath.Dir(file))
		t.Run(filepath.Base(folder), func(t *testing.T) {
			var parts []result.Part
			for n := 1; ; n++ {
				part, err := report.ReadPart(filepath.Join(folder, strconv.Itoa(n)))
				if errors.Is(err, os.ErrNotExist) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = part.Ledger.Close() }()
				parts = append(parts, part)
			}
			r, err := accountOf(parts)
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, filepath.Join(folder, "expected.json"), goldenOf(r))
		})
	}
}

func compareGolden(t *testing.T, path string, now golden) {
	var old golden
	text, err := os.ReadFile(path) //gosec:disable G304 -- a file of the test
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	if *update {
		now.Towards = old.Towards
		if text, err = json.MarshalIndent(now, "", " "); err == nil {
			err = os.WriteFile(path, append(text, '\n'), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := json.MarshalIndent(now, "", " "); !*update && !mayBecome(old, now) {
		t.Errorf("%s says\n%s\nand the account is\n%s", path, text, got)
	}
}
