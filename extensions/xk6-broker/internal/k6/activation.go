package k6

import (
	"context"
	"reflect"

	"go.k6.io/k6/v2/lib"
)

// activation returns the context of a VU's time in its scenario, which is the parent of the context
// of an iteration. k6 gives modules only the latter. Setup and teardown have one context. If a
// later Go hides the parent, consumers leave with each iteration.
func activation(iteration context.Context) context.Context {
	if lib.GetScenarioState(iteration) == nil {
		return iteration
	}
	v := reflect.Indirect(reflect.ValueOf(iteration))
	if v.Kind() != reflect.Struct {
		return iteration
	}
	field := v.FieldByName("Context")
	if !field.IsValid() || !field.CanInterface() {
		return iteration
	}
	if parent, ok := field.Interface().(context.Context); ok {
		return parent
	}
	return iteration
}
