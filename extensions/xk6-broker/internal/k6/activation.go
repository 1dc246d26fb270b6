package k6

import (
	"context"
	"reflect"

	"go.k6.io/k6/v2/lib"
)

// activation gives the context of a VU's activation, which ends when its scenario is over for it, from that of one of its iterations. k6
// lends only the latter, which is made of the former and ends with the iteration; setup and teardown have one context. Should a later Go
// make contexts otherwise, consumers leave with each iteration, and join again with the next.
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
