// Package witness watches, independently of what a load generator measures, whether the platform let it run: the machine, its
// hypervisor, the container, the operating system, Go's scheduler and its collector.
//
// A [Witness] has a goroutine that does nothing but sleep a millisecond, over and over, and note how much longer that took. Nothing it
// notes has to do with a broker: each of its hiccups also befell whatever else the process had to do at that moment, such as to send in
// time or to look at the clock when an answer came. The method is that of Gil Tene's jHiccup. Beside that it tells how busy the CPUs were,
// where the platform says so.
//
//	w := witness.Start()
//	defer w.Stop()
//	for range time.Tick(time.Second) {
//		i := w.Interval()
//		fmt.Println(time.Duration(i.Hiccups.Max()), i.Steal)
//	}
package machine

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Interval is what a witness saw between two moments.
type Interval struct {
	// From and To are the moments, in ns since the Unix epoch, by Now of package driver.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Hiccups are how much longer than ever observed at best a sleep of one millisecond took, in ns, one value for each millisecond of
	// the interval: a standstill of 100 ms has the values 100, 99, 98 … ms in it, as what was to happen in its first millisecond was late
	// by 100 ms, in its second by 99. One that is not over is in the next interval. It is never nil.
	Hiccups *hist.Histogram `json:"hiccups"`

	// Process is how much of its CPUs, which are as many as GOMAXPROCS says, the process used.
	Process Share `json:"process"`
	// Host is how much of the CPUs that the process may run on was used by all processes of the machine, this one included.
	Host Share `json:"host"`
	// Own is what of that the process used. It is no more than Process, and less where GOMAXPROCS, or a limit of its cgroup, leaves CPUs to others.
	Own Share `json:"own"`
	// Steal is how much of those CPUs the hypervisor gave to other machines while this one wanted them.
	Steal Share `json:"steal"`
	// Pressure is how much of the time some task of the machine was kept waiting for a CPU: Linux's pressure stall information.
	Pressure Share `json:"pressure"`
	// GroupPressure is the same of the tasks in the process's own cgroup, such as those of its container; only there is waiting seen
	// that the group's own limit of CPU causes. It is known under cgroup v2.
	GroupPressure Share `json:"group_pressure"`
}

// Share is a part of a whole, if it is known. Platforms but Linux know of none but the process's own.
type Share struct {
	Value float64 `json:"value"` // 0 to 1
	Known bool    `json:"known"`
}

// share is a part of a whole, which is unknown where there is no whole.
func share(part, whole float64) Share {
	if whole <= 0 {
		return Share{}
	}
	return Share{Value: min(1, max(0, part/whole)), Known: true}
}

// Witness watches from [Start] to [Witness.Stop].
type Witness struct {
	meter *meter
	host  *host
	stop  chan struct{}
	done  chan struct{}

	mu   sync.Mutex // of what follows
	last moment
}

// moment is what the platform has counted up to a time.
type moment struct {
	at      int64
	process int64 // CPU time, in ns
	host    counts
}

// Start starts a witness, which takes a millisecond. It then costs some hundredths of a CPU: what it takes to wake a goroutine a
// thousand times a second, and little more. Where the system has no sleep that is as precise, its hiccups are rough.
func Start() *Witness {
	w := &Witness{host: thisHost(), stop: make(chan struct{}), done: make(chan struct{})}
	sleeper := Sleeper{Sleep: Until}
	ready := make(chan struct{})
	go func() {
		defer close(w.done)
		w.meter = newMeter(driver.Now, func(d time.Duration) {
			_ = sleeper.Until(context.Background(), driver.Now()+int64(d)) // there is no error
		})
		w.last = w.now()
		close(ready)
		w.meter.run(w.stop)
	}()
	<-ready
	return w
}

func (w *Witness) now() moment {
	return moment{at: driver.Now(), process: int64(CPU()), host: w.host.count()}
}

// Interval is what was seen since it was last called, or since the start. It reads a few small files of the operating system's and is
// meant to be called about once a second; where it is called so soon again that nothing was counted meanwhile, the shares are not known.
func (w *Witness) Interval() Interval {
	w.mu.Lock()
	defer w.mu.Unlock()
	hiccups := w.meter.take()
	from, to := w.last, w.now()
	w.last = to
	i := Interval{From: from.at, To: to.at, Hiccups: hiccups}
	if to.process > 0 {
		i.Process = share(float64(to.process-from.process), float64(to.at-from.at)*float64(runtime.GOMAXPROCS(0)))
	}
	to.host.since(from.host, float64(to.at-from.at), &i)
	if cpus := to.host.cpus; to.process > 0 && cpus > 0 {
		i.Own = share(float64(to.process-from.process), float64(to.at-from.at)*float64(cpus))
	}
	return i
}

// Stop ends the witness and returns when its goroutine is through. [Witness.Interval] may still be called for what was seen until then.
func (w *Witness) Stop() {
	close(w.stop)
	<-w.done
}
