package machine

import (
	"math"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eventually waits until the condition holds; the package has a time limit.
func eventually(is func() bool) {
	for !is() {
		time.Sleep(time.Millisecond)
	}
}

func TestIntervalsFollowOneAnother(t *testing.T) {
	w := Start()
	var first, second Interval
	var n uint64
	eventually(func() bool {
		first = w.Interval()
		n += first.Hiccups.Count()
		return n >= 20
	})
	eventually(func() bool { second = w.Interval(); return second.Hiccups.Count() > 0 })
	if second.From < first.To || second.To <= second.From || second.Hiccups.Min() < 0 {
		t.Errorf("%+v after %+v", second, first)
	}
	w.Stop() // goleak sees that nothing runs on
	rest := w.Interval()
	if again := w.Interval(); again.Hiccups.Count() != 0 || again.From != rest.To {
		t.Errorf("it goes on: %+v", again)
	}
}

// What this process burns is seen as its own, and as the machine's where that is known.
func TestABusyProcess(t *testing.T) {
	w := Start()
	defer w.Stop()
	var i Interval
	eventually(func() bool {
		for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
		}
		i = w.Interval()
		return i.Process.Value > 0 && (runtime.GOOS != "linux" || i.Host.Value > 0)
	})
	for name, s := range map[string]Share{
		"process": i.Process, "host": i.Host, "own": i.Own, "steal": i.Steal, "pressure": i.Pressure, "group pressure": i.GroupPressure,
	} {
		t.Logf("%s: %+v", name, s)
		if s.Value < 0 || s.Value > 1 || !s.Known && s.Value != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// BenchmarkMonitor reports the CPU of a monitor that is read once a second.
func BenchmarkMonitor(b *testing.B) {
	w := Start()
	defer w.Stop()
	w.Interval()
	b.ResetTimer()
	var used, wall float64
	for range b.N {
		time.Sleep(time.Second)
		i := w.Interval()
		used += i.Process.Value * float64(runtime.GOMAXPROCS(0)) * float64(i.To-i.From)
		wall += float64(i.To - i.From)
	}
	b.ReportMetric(100*used/wall, "%CPU")
}

// With fewer threads than the machine has CPUs, a process that uses all of its own uses a part of the machine.
func TestAProcessOfFewerCPUsThanTheMachineHas(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	cpus := runtime.NumCPU()
	if cpus < 2 || runtime.GOOS != "linux" {
		t.Skip("there is one CPU, or what the machine's did is not known")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w := Start()
	defer w.Stop()
	var i Interval
	eventually(func() bool {
		for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
		}
		i = w.Interval()
		return i.Own.Known && i.Own.Value > 0
	})
	if want := i.Process.Value / float64(cpus); math.Abs(i.Own.Value-want) > 0.05 {
		t.Errorf("the process used %v of its one CPU, and %v of the machine's %d, want %v", i.Process.Value, i.Own.Value, cpus, want)
	}
}
