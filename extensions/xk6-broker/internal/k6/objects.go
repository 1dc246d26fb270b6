package k6

import (
	"encoding/json"
	"time"

	"github.com/grafana/sobek"
)

// objects are the connections, producers and consumers of a VU by their descriptions. A repeated
// description, as in each iteration, returns the same object.
type objects map[string]*sobek.Object

// get returns the object of a call with a name and options, which describe makes if there is none.
func (all objects) get(
	call, name string, opts sobek.Value, describe func(name string, o *options) (*sobek.Object, error),
) (*sobek.Object, error) {
	o, err := readOptions(call, opts)
	if err != nil {
		return nil, err
	}
	key, err := json.Marshal([]any{call, name, o.given})
	if err != nil { // describe returns the error
		return describe(name, o)
	}
	if object := all[string(key)]; object != nil {
		return object, nil
	}
	o.uses = map[string]any{}
	object, err := describe(name, o)
	if err == nil {
		all[string(key)] = object
	}
	return object, err
}

// readOnly has the methods of a dynamic object that a script cannot change.
type readOnly struct{}

// Set changes nothing.
func (readOnly) Set(string, sobek.Value) bool { return false }

// Delete removes nothing.
func (readOnly) Delete(string) bool { return false }

// ms returns ns as ms, whole ones exactly.
func ms(ns int64) float64 {
	const unit = int64(time.Millisecond)
	return float64(ns/unit) + float64(ns%unit)/float64(unit)
}
