package k6

import (
	"context"
	"errors"
	"time"

	"github.com/grafana/sobek"
)

// errStranded is what a script gets, in each of its iterations, in a VU whose scripts wait for ever at their first await. It comes of a
// fault of k6's JavaScript runtime: where an async function that has been resumed is interrupted, as by the end of its scenario's time, no
// promise resumes any in later activations, whoever settles it.
var errStranded = errors.New("this VU can await nothing any more: k6 interrupted its script in the middle when the time of its scenario before was over, " +
	"after which k6's JavaScript runtime resumes no script that waits for a promise; give that scenario a gracefulStop within which its iterations end")

// strandedPause keeps a VU whose iterations all fail from spinning.
const strandedPause = time.Second

// checkResumption sees to it that an iteration fails whose script would never be resumed.
func (in *instance) checkResumption() {
	strand := in.strand(in.vu.Context())
	in.vu.RegisterCallback()(func() error { // what it is called by in the script has returned by then: it waits for a promise, or is done
		if in.resumes() {
			return nil
		}
		in.stranded = true
		in.run.stranded.Add(1)
		return strand()
	})
}

// resumes reports whether the runtime does what waits for a promise. Only the event loop may ask.
func (in *instance) resumes() (yes bool) {
	rt := in.vu.Runtime()
	promise, resolve, _ := rt.NewPromise()
	object := rt.ToValue(promise).ToObject(rt)
	if then, ok := sobek.AssertFunction(object.Get("then")); ok {
		_, _ = then(object, rt.ToValue(func() { yes = true }))
	}
	_ = resolve(sobek.Undefined()) // nothing of the script is called, so nothing is interrupted
	return yes
}

// strand gives what ends an iteration in a stranded VU, for the event loop.
func (in *instance) strand(iteration context.Context) func() error {
	over := activation(iteration)
	return func() error {
		select {
		case <-time.After(strandedPause):
		case <-over.Done():
		}
		return errStranded
	}
}
