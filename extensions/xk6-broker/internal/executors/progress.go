package executors

import (
	"fmt"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// progress tells k6's progress bar how far the scenario is.
type progress struct {
	bar    any
	pool   *pool
	length time.Duration
	plan   schedule.Plan
	part   float64 // of the plan's rate that is this process's
	width  int     // of a number of VUs
	start  atomic.Int64
}

func newProgress(e *openArrivalRate, p *pool, vus int64) *progress {
	plan, _ := e.config.plan() // it has been validated
	return &progress{
		bar: e.GetProgress(), pool: p, length: e.config.length(), plan: plan,
		part: p.line.share.of.Fraction(), width: len(strconv.FormatInt(vus, 10)),
	}
}

// text is the part that is done, and three columns: VUs, time, and rate with queue.
func (p *progress) text() (float64, []string) {
	spent := min(p.length, time.Duration(driver.Now()-p.start.Load()))
	clock := p.length.String()
	if spent < p.length {
		clock = fmt.Sprintf("%v/%v", spent.Truncate(resolution(p.length)), p.length)
	}
	return float64(spent) / float64(p.length), []string{
		fmt.Sprintf("%0*d/%0*d VUs", p.width, p.pool.busy.Load(), p.width, p.pool.allocated.Load()),
		clock,
		fmt.Sprintf("%.2f iters/s, queue %d", rateAt(p.plan, spent)*p.part, p.pool.line.waiting()),
	}
}

// resolution of what is shown of a time.
func resolution(length time.Duration) time.Duration {
	if length > 10*time.Minute {
		return time.Second
	}
	return 100 * time.Millisecond
}

// rateAt is the rate of a plan at a time after its start, in arrivals per second.
func rateAt(p schedule.Plan, spent time.Duration) float64 {
	if len(p.Stages) == 0 {
		return p.Rate.PerSecond()
	}
	from := p.StartRate.PerSecond()
	for _, s := range p.Stages {
		to := s.Target.PerSecond()
		if spent < s.Duration {
			return from + (to-from)*float64(spent)/float64(s.Duration)
		}
		from, spent = to, spent-s.Duration
	}
	return from
}

// The bar's statuses, as k6 shows them.
const (
	statusStopping    = '↓'
	statusInterrupted = '✗'
	statusDone        = '✓'
)

// waiting shows that the schedule has not begun.
func (p *progress) waiting() {
	show(p.bar, func() (float64, []string) { return 0, []string{"waiting for the consumers"} }, 0)
}

func (p *progress) begin(start int64) {
	p.start.Store(start)
	show(p.bar, p.text, 0)
}

func (p *progress) stopping() { show(p.bar, p.text, statusStopping) }

// done shows for good how it ended.
func (p *progress) done(interrupted bool) {
	part, columns := p.text()
	status := statusDone
	if interrupted || part < 1 {
		status = statusInterrupted
	}
	show(p.bar, func() (float64, []string) { return part, columns }, status)
}

// show sets what a progress bar shows. k6 lends each executor a bar but keeps the bar's type, and the options that would set this, in a
// package of its own. Its method Modify is within reach all the same, and calls any function of the right type while it holds the
// bar's lock. Should a later k6 have other fields, the bar shows nothing but the scenario's name, and the test runs as well.
func show(bar any, text func() (float64, []string), status rune) {
	modify := reflect.ValueOf(bar).MethodByName("Modify")
	if !modify.IsValid() || !modify.Type().IsVariadic() {
		return
	}
	option := modify.Type().In(0).Elem()
	if option.Kind() != reflect.Func || option.NumIn() != 1 || option.NumOut() != 0 || option.In(0).Kind() != reflect.Pointer {
		return
	}
	modify.Call([]reflect.Value{reflect.MakeFunc(option, func(args []reflect.Value) []reflect.Value {
		fields := args[0].Elem()
		set(fields, "progress", reflect.ValueOf(text))
		if status != 0 {
			set(fields, "status", reflect.ValueOf(status))
		}
		return nil
	})})
}

// set sets a field of a struct if it is there and of that kind.
func set(of reflect.Value, name string, to reflect.Value) {
	if of.Kind() != reflect.Struct {
		return
	}
	field := of.FieldByName(name)
	if !field.IsValid() || field.Kind() != to.Kind() || !to.CanConvert(field.Type()) {
		return
	}
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(to.Convert(field.Type())) //gosec:disable G103 -- the field is k6's, and not exported
}
