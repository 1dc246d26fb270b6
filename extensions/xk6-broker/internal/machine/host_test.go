package machine

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// machine is a folder with the files of a machine.
type machine struct{ dir string }

func (m machine) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (m machine) host(mine ...int) *host {
	return newHost(filepath.Join(m.dir, "proc"), filepath.Join(m.dir, "cgroup"), func(n int) bool {
		for _, cpu := range mine {
			if n == cpu {
				return true
			}
		}
		return false
	})
}

// changed gives the shares of a second between two texts of /proc/stat.
func changed(t *testing.T, before, after string, mine ...int) Interval {
	t.Helper()
	m := machine{t.TempDir()}
	h := m.host(mine...)
	m.write(t, "proc/stat", before)
	from := h.count()
	m.write(t, "proc/stat", after)
	var i Interval
	h.count().since(from, 1e9, &i)
	return i
}

func (s Share) is(want float64) bool { return s.Known && math.Abs(s.Value-want) < 1e-9 }

const stat = `cpu  38919 13261 6277 186220 840 0 439 28 0 0
cpu0 20436 6507 3107 92234 515 0 163 12 0 0
cpu1 18483 6754 3169 93985 325 0 275 16 0 0
cpu10 1 1 1 1 1 1 1 1 0 0
intr 1581051 0 0 0
ctxt 2380910
btime 1795287887
`

func TestSharesOfTheHost(t *testing.T) {
	// CPU 0: 10 each of user, nice, system, irq and softirq, 30 idle, 10 waiting for a disk, 10 stolen. Guests' time is in user and nice.
	// CPU 1: 100 idle.
	after := `cpu  38949 13261 6277 186220 840 0 439 28 0 0
cpu0 20446 6517 3117 92264 525 10 173 22 5 5
cpu1 18483 6754 3169 94085 325 0 275 16 0 0
cpu10 901 1 1 1 1 1 1 1 0 0
`
	for _, c := range []struct {
		mine        []int
		host, steal float64
	}{{[]int{0}, .5, .1}, {[]int{1}, 0, 0}, {[]int{0, 1}, .25, .05}, {[]int{10}, 1, 0}} {
		if i := changed(t, stat, after, c.mine...); !i.Host.is(c.host) || !i.Steal.is(c.steal) {
			t.Errorf("CPUs %v: %+v, want %v used and %v stolen", c.mine, i, c.host, c.steal)
		}
	}
	// An old kernel has fewer columns.
	if i := changed(t, "cpu0 10 0 10 80\n", "cpu0 20 0 20 160\n", 0); !i.Host.is(.2) || !i.Steal.is(0) {
		t.Errorf("%+v", i)
	}
	// Idle time may go back a little.
	if i := changed(t, "cpu0 10 0 10 80 5 0 0 0\n", "cpu0 20 0 20 79 5 0 0 0\n", 0); !i.Host.is(1) || !i.Steal.is(0) {
		t.Errorf("%+v", i)
	}
}

func TestHost_NoOrDamagedFiles_Unknown(t *testing.T) {
	for _, text := range [][2]string{
		{stat, stat}, {"", ""}, {"", stat}, {stat, ""}, {stat, "cpu0 many 0 10 80\n"}, {"intr 5\n", "intr 9\n"}, {"cpu0\ncpu\n", "cpu0 1\n"},
	} {
		if i := changed(t, text[0], text[1], 0, 1); i != (Interval{}) {
			t.Errorf("from %q to %q: %+v", text[0], text[1], i)
		}
	}
	if c := newHost("", "", nil).count(); c != (counts{}) {
		t.Errorf("%+v", c)
	}
	if c := (machine{t.TempDir()}).host(0).count(); c != (counts{}) {
		t.Errorf("%+v", c)
	}
}

func TestPressure(t *testing.T) {
	const before, after = "some avg10=0.14 avg60=7.95 avg300=6.70 total=124846333\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		"some avg10=9.14 avg60=7.95 avg300=6.70 total=125096333\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=900000\n"
	for _, c := range []struct {
		cgroup, file string
		known        bool
	}{
		{"0::/\n", "cgroup/cpu.pressure", true},
		{"0::/docker/abc\n", "cgroup/docker/abc/cpu.pressure", true},
		{"9:name=systemd:/\n4:memory:/a\n0::/b\n", "cgroup/unified/b/cpu.pressure", true},
		{"9:name=systemd:/\n4:memory:/a\n", "cgroup/a/cpu.pressure", false},
		{"0::/docker/abc\n", "cgroup/docker/def/cpu.pressure", false},
	} {
		m := machine{t.TempDir()}
		m.write(t, "proc/7/cgroup", c.cgroup)
		if err := os.Symlink("7", filepath.Join(m.dir, "proc/self")); err != nil {
			t.Fatal(err)
		}
		m.write(t, c.file, "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n")
		h := m.host(0)
		from := h.count()
		m.write(t, c.file, "some avg10=0.00 avg60=0.00 avg300=0.00 total=750005\n")
		var i Interval
		h.count().since(from, 1e9, &i)
		if i.GroupPressure.Known != c.known || c.known && !i.GroupPressure.is(.75) || i.Pressure.Known {
			t.Errorf("cgroup %q with %s: %+v", c.cgroup, c.file, i)
		}
		m.write(t, "proc/pressure/cpu", before)
		from = h.count()
		m.write(t, "proc/pressure/cpu", after)
		i = Interval{}
		h.count().since(from, 1e9, &i)
		if !i.Pressure.is(.25) {
			t.Errorf("%+v", i)
		}
	}
	for _, damaged := range []string{"", "some\n", "some total=\n", "some total=-5\n", "full total=5\n", "something total=5\n"} {
		m := machine{t.TempDir()}
		m.write(t, "proc/pressure/cpu", damaged)
		if c := m.host(0).count(); c.pressure.valid {
			t.Errorf("%q: %+v", damaged, c)
		}
	}
}
