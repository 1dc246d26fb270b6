package k6

import (
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
)

// guarded lends a Go function to scripts under a name. A panic of our own code becomes an exception of the script, where it would end
// the process and lose every result. A value that is no function stays as it is.
func (in *instance) guarded(name string, value any) any {
	v := reflect.ValueOf(value)
	if v.Kind() != reflect.Func {
		return value
	}
	direct, ok := value.(func(sobek.FunctionCall) sobek.Value) // which costs no reflection
	if ok {
		value = func(call sobek.FunctionCall) sobek.Value {
			defer in.guard(name)
			in.verb = name
			return direct(call)
		}
	} else {
		value = reflect.MakeFunc(v.Type(), func(arguments []reflect.Value) []reflect.Value {
			defer in.guard(name)
			in.verb = name
			return v.Call(arguments)
		}).Interface()
	}
	function := in.vu.Runtime().ToValue(value).ToObject(in.vu.Runtime())
	// It is what stack traces show. Nobody has frozen a fresh function.
	_ = function.DefineDataProperty("name", in.vu.Runtime().ToValue(name), sobek.FLAG_FALSE, sobek.FLAG_TRUE, sobek.FLAG_FALSE)
	return function
}

// guard is deferred by what a script calls.
func (in *instance) guard(verb string) {
	cause := recover()
	if cause == nil {
		return
	}
	if thrown(cause) {
		panic(cause)
	}
	common.Throw(in.vu.Runtime(), in.internal(verb, cause))
}

// spawn does in a goroutine what settles the promise of a verb.
func (in *instance) spawn(verb string, settle settler, work func()) {
	go func() {
		defer func() {
			if cause := recover(); cause != nil {
				in.reject(verb, settle, cause)
			}
		}()
		work()
	}()
}

// reject rejects the promise of what panicked, unless it is settled already.
func (in *instance) reject(verb string, settle settler, cause any) {
	err := in.internal(verb, cause)
	settle(func() (any, error) { return nil, err })
}

// attempt gives the value that a promise is settled with, or the error.
func (in *instance) attempt(verb string, o outcome) (v any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = in.internal(verb, cause)
		}
	}()
	return o.value()
}

// runtimePackage is whose panics are no mistakes: JavaScript's exceptions and interrupts travel as such.
var runtimePackage = reflect.TypeFor[sobek.Runtime]().PkgPath()

func thrown(cause any) bool {
	t := reflect.TypeOf(cause)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == runtimePackage
}

// internal is the error for a mistake of ours. The first of a test is logged, with the stack that a report of it needs.
func (in *instance) internal(verb string, cause any) error {
	in.run.internal.Do(func() {
		in.run.logger.Errorf("internal error in %s: %v\n%s", verb, cause, debug.Stack())
	})
	return fmt.Errorf("broker: internal error in %s: %v, please report it", verb, cause)
}
