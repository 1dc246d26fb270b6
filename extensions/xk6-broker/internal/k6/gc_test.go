package k6

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Garbage is collected less often, in memory that has a limit, unless the user has chosen; and a
// result says how it was. It is of the process, so that each case has one of its own.
func TestHowGarbageIsCollected(t *testing.T) {
	if want := os.Getenv("WANT"); want != "" {
		newScript(t)
		env := environment()
		limit := "none"
		if env["gomemlimit"] != "" {
			limit = env["gomemlimit"]
		}
		if got := env["gogc"] + " " + limit; !strings.HasPrefix(got, want) || strings.HasSuffix(got, "none") != strings.HasSuffix(want, "none") {
			t.Errorf("%s, want %s", got, want)
		}
		return
	}
	for _, c := range []struct{ chosen, want string }{
		{"", "400 "}, {"GOGC=150", "150 none"}, {"GOGC=off", "off none"}, {"GOMEMLIMIT=1GiB", "400 1.0 GiB"}, {"GOMEMLIMIT=off", "400 none"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHowGarbageIsCollected$")
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
			return strings.HasPrefix(s, "GOGC=") || strings.HasPrefix(s, "GOMEMLIMIT=")
		}), "WANT="+c.want)
		if c.chosen != "" {
			cmd.Env = append(cmd.Env, c.chosen)
		}
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", c.chosen, err, said)
		}
	}
}
