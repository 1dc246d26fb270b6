package k6

import (
	"context"
	"errors"
	"time"

	"github.com/grafana/sobek"
)

// errStranded is the error of each iteration in a VU whose scripts no promise resumes. k6's
// JavaScript runtime comes to that if an async function is interrupted after it was resumed, as at
// the end of its scenario.
var errStranded = errors.New(
	"k6 interrupted the script of this VU at the end of an earlier scenario, and promises do not work in it any more: " +
		"give that scenario a gracefulStop within which its iterations end",
)

// strandedPause keeps a VU whose iterations all fail from spinning.
const strandedPause = time.Second

// checkResumption makes an iteration fail if no promise resumes its script.
func (in *instance) checkResumption() {
	strand := in.strand(in.vu.Context())
	in.vu.RegisterCallback()(func() error { // the script waits for a promise by then, or has ended
		if in.resumes() {
			return nil
		}
		in.stranded = true
		in.run.stranded.Add(1)
		return strand()
	})
}

// resumes reports whether a settled promise resumes its waiter. It is called on the event loop.
func (in *instance) resumes() (resumed bool) {
	rt := in.vu.Runtime()
	promise, resolve, _ := rt.NewPromise()
	object := rt.ToValue(promise).ToObject(rt)
	if then, ok := sobek.AssertFunction(object.Get("then")); ok {
		_, _ = then(object, rt.ToValue(func() { resumed = true }))
	}
	_ = resolve(sobek.Undefined()) // it calls nothing of the script
	return resumed
}

// strand returns a function for the event loop that ends an iteration in a stranded VU.
func (in *instance) strand(iteration context.Context) func() error {
	ended := activation(iteration)
	return func() error {
		select {
		case <-time.After(strandedPause):
		case <-ended.Done():
		}
		return errStranded
	}
}
