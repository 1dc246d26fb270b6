package verdict_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

var update = flag.Bool("update", false, "write what the parts say to expected.json")

// golden is expected.json: the account and the reasons of a recorded test.
type golden struct {
	Valid   bool                   `json:"valid"`
	Reasons []string               `json:"reasons"` // level, code and variant of each
	Topics  map[string]goldenTopic `json:"topics"`
}

type goldenTopic struct {
	Counts map[string]int64       `json:"counts"`
	Groups map[string]goldenGroup `json:"groups"`
}

type goldenGroup struct {
	account.Tally
	Routed      uint64                 `json:"routed"`
	Lost        uint64                 `json:"lost"`
	Undelivered uint64                 `json:"undelivered"`
	Uncertain   map[account.Why]uint64 `json:"uncertain"`
}

func goldenOf(r *result.Result) golden {
	all := golden{Valid: r.Verdict.Valid, Reasons: []string{}, Topics: map[string]goldenTopic{}}
	for _, why := range r.Verdict.Reasons {
		all.Reasons = append(all.Reasons, strings.TrimSpace(fmt.Sprintf("%s %s %s", why.Level, why.Code, why.Word("why"))))
	}
	slices.Sort(all.Reasons)
	all.Reasons = slices.Compact(all.Reasons)
	for _, t := range r.Topics {
		topic := goldenTopic{Counts: t.Counts, Groups: map[string]goldenGroup{}}
		for _, g := range t.Groups {
			topic.Groups[g.Group] = goldenGroup{g.Tally, g.Routed, g.Lost, g.Undelivered, g.Why}
		}
		all.Topics[t.Topic] = topic
	}
	return all
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
			var parts []verdict.Part
			for n := 1; ; n++ {
				part, err := report.ReadPart(filepath.Join(folder, strconv.Itoa(n)))
				if errors.Is(err, os.ErrNotExist) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				parts = append(parts, part)
			}
			r, err := verdict.Merge(parts, verdict.Siblings{})
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, filepath.Join(folder, "expected.json"), goldenOf(r))
		})
	}
}

func compareGolden(t *testing.T, path string, now golden) {
	got, err := json.MarshalIndent(now, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path) //gosec:disable G304 -- a file of the test
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s says\n%s\nand the account is\n%s", path, want, got)
	}
}
