package k6

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/grafana/sobek"
)

func given(v sobek.Value) bool { return v != nil && !sobek.IsUndefined(v) && !sobek.IsNull(v) }

var (
	errMissing  = errors.New("it is missing: a string, an object, an ArrayBuffer, a typed array or a DataView is needed")
	errDetached = errors.New("it is a detached ArrayBuffer, or a view of one")
	errNoJSON   = errors.New("it is a function, a promise, a Map or a Set, which JSON has no form for")
)

// bytesOf copies a string, an ArrayBuffer, a view of one or, as JSON, any other value. The script
// can change its own value at once.
func (in *instance) bytesOf(v sobek.Value) ([]byte, error) {
	if !given(v) {
		return nil, errMissing
	}
	o, ok := v.(*sobek.Object)
	if !ok {
		if _, ok := v.(*sobek.Symbol); ok {
			return nil, errors.New("it is a symbol, which cannot be sent")
		}
		return []byte(v.String()), nil
	}
	if b, ok, err := in.bytesIn(o); ok || err != nil {
		return b, err
	}
	if !hasJSON(o) {
		return nil, errNoJSON
	}
	text, err := o.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	return text, nil
}

// hasJSON reports whether JSON has a form for an object. Of others it writes "null" or "{}".
func hasJSON(o *sobek.Object) bool {
	if _, callable := sobek.AssertFunction(o); callable {
		return false
	}
	switch o.ExportType() {
	case mapType, promiseType:
		return false
	case listType:
		return isArray(o)
	}
	return true
}

// bytesIn copies the bytes of an ArrayBuffer, a typed array or a DataView, by the class of the
// object. Any other object is not ok.
func (in *instance) bytesIn(o *sobek.Object) (b []byte, ok bool, err error) {
	if ab, ok := arrayBuffer(o); ok {
		if ab.Detached() {
			return nil, true, errDetached
		}
		return append([]byte{}, ab.Bytes()...), true, nil
	}
	if o.Get("byteLength") == nil { // the fast path of most objects
		return nil, false, nil
	}
	view, err := in.isView(sobek.Undefined(), o)
	if err != nil || !view.ToBoolean() {
		return nil, false, err
	}
	if ab, ok := arrayBuffer(o.Get("buffer")); ok && ab.Detached() {
		return nil, true, errDetached
	}
	var shared []byte // with the script
	err = in.vu.Runtime().ExportTo(o, &shared)
	return append([]byte{}, shared...), true, err
}

var (
	arrayBufferType = reflect.TypeFor[sobek.ArrayBuffer]()
	promiseType     = reflect.TypeFor[*sobek.Promise]()
	mapType         = reflect.TypeFor[[][2]any]()
	listType        = reflect.TypeFor[[]any]() // of arrays and sets
	proxyType       = reflect.TypeFor[sobek.Proxy]()
)

// arrayBuffer checks the type first, because an export copies the content of other objects.
func arrayBuffer(v sobek.Value) (ab sobek.ArrayBuffer, ok bool) {
	if v == nil || v.ExportType() != arrayBufferType {
		return ab, false
	}
	ab, ok = v.Export().(sobek.ArrayBuffer)
	return ab, ok
}

// hasNames reports whether an object has names and values, unlike a list, a Map or a function.
func hasNames(o *sobek.Object) bool {
	t := o.ExportType()
	return t.Kind() == reflect.Map || t == proxyType
}
