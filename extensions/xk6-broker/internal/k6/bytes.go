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
	if err := refuseJSON(o); err != nil {
		return nil, err
	}
	text, err := o.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	return text, nil
}

// refuseJSON returns an error for an object that JSON writes as "null" or "{}" whatever its
// content.
func refuseJSON(o *sobek.Object) error {
	_, callable := sobek.AssertFunction(o)
	switch t := o.ExportType(); {
	case callable:
		return errors.New("it is a function, which cannot be sent")
	case t == mapType:
		return errors.New("it is a Map, which JSON has no form for: send Object.fromEntries(map)")
	case t == listType && !isArray(o):
		return errors.New("it is a Set, which JSON has no form for: send Array.from(set)")
	case t == promiseType:
		return errors.New("it is a promise, which cannot be sent: await it first")
	}
	return nil
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

// hasNames reports whether an object has names and values, unlike a list, a Map, a function or
// bytes.
func (in *instance) hasNames(o *sobek.Object) bool {
	if _, bytes, err := in.bytesIn(o); bytes || err != nil {
		return false
	}
	t := o.ExportType()
	return t.Kind() == reflect.Map || t == proxyType
}
