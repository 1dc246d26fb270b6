package k6

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"github.com/grafana/sobek"
)

func given(v sobek.Value) bool { return v != nil && !sobek.IsUndefined(v) && !sobek.IsNull(v) }

var (
	errMissing  = errors.New("it is missing: a string, an object, an ArrayBuffer, a typed array or a DataView is needed")
	errDetached = errors.New("it is an ArrayBuffer, or a view of one, whose bytes were given away")
)

// bytesOf copies a string, an ArrayBuffer, a view of one or, as JSON, any other value. The copy is the message's: the script may
// change its own at once.
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
	// JSON would make "null" and "{}" of these, which is nobody's wish.
	if _, callable := sobek.AssertFunction(o); callable {
		return nil, errors.New("it is a function, which cannot be sent")
	}
	if err := formless(o); err != nil {
		return nil, err
	}
	text, err := o.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	if bytes.Contains(text, []byte("{}")) { // which spares most objects the search
		err = formlessIn(o)
	}
	return text, err
}

// formless returns why JSON would make "{}" of an object.
func formless(o *sobek.Object) error {
	switch t := o.ExportType(); {
	case t == mapType:
		return errors.New("it is a Map, which JSON has no form for: send Object.fromEntries(map)")
	case t == listType && !isArray(o):
		return errors.New("it is a Set, which JSON has no form for: send Array.from(set)")
	case t == promiseType:
		return errors.New("it is a promise, which cannot be sent: await it first")
	}
	return nil
}

// formlessIn returns why JSON would make "{}" of something in an object. What has a toJSON says itself what it becomes.
func formlessIn(o *sobek.Object) error {
	for _, name := range o.Keys() {
		held, ok := o.Get(name).(*sobek.Object)
		if !ok {
			continue
		}
		if _, has := sobek.AssertFunction(held.Get("toJSON")); has {
			continue
		}
		err := formless(held)
		if err == nil {
			err = formlessIn(held)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// bytesIn copies the bytes of an ArrayBuffer, a typed array or a DataView; any other object is not ok. It asks for the class and not
// for the properties, which any object may have.
func (in *instance) bytesIn(o *sobek.Object) (b []byte, ok bool, err error) {
	if ab, ok := arrayBuffer(o); ok {
		if ab.Detached() {
			return nil, true, errDetached
		}
		return append([]byte{}, ab.Bytes()...), true, nil
	}
	if o.Get("byteLength") == nil { // which spares most objects the next question
		return nil, false, nil
	}
	view, err := in.isView(sobek.Undefined(), o)
	if err != nil || !view.ToBoolean() {
		return nil, false, err
	}
	if ab, ok := arrayBuffer(o.Get("buffer")); ok && ab.Detached() {
		return nil, true, errDetached
	}
	var lent []byte // the script's own
	err = in.vu.Runtime().ExportTo(o, &lent)
	return append([]byte{}, lent...), true, err
}

var (
	arrayBufferType = reflect.TypeFor[sobek.ArrayBuffer]()
	promiseType     = reflect.TypeFor[*sobek.Promise]()
	mapType         = reflect.TypeFor[[][2]any]()
	listType        = reflect.TypeFor[[]any]() // of arrays and sets
	proxyType       = reflect.TypeFor[sobek.Proxy]()
)

// arrayBuffer asks for the type first: to export another object would copy all that it holds.
func arrayBuffer(v sobek.Value) (ab sobek.ArrayBuffer, ok bool) {
	if v == nil || v.ExportType() != arrayBufferType {
		return ab, false
	}
	ab, ok = v.Export().(sobek.ArrayBuffer)
	return ab, ok
}

// hasNames reports whether an object is one of names and values, rather than a list, a Map, a function, or bytes.
func (in *instance) hasNames(o *sobek.Object) bool {
	if _, bytes, err := in.bytesIn(o); bytes || err != nil {
		return false
	}
	t := o.ExportType()
	return t.Kind() == reflect.Map || t == proxyType
}
