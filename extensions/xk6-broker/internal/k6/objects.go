package k6

import (
	"encoding/json"
	"time"

	"github.com/grafana/sobek"
)

// objects are the connections, producers and consumers of a VU by their descriptions. A repeated
// description, as in each iteration, returns the same object.
type objects map[string]*sobek.Object

func (all objects) get(kind, name string, o *options, describe func() (*sobek.Object, error)) (*sobek.Object, error) {
	key, err := json.Marshal([]any{kind, name, o.given})
	if err != nil { // describe returns the error
		return describe()
	}
	if object := all[string(key)]; object != nil {
		return object, nil
	}
	object, err := describe()
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
