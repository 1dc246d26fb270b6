package k6

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// options are the options of a call. Each is read by name and type, and the rest is an error. The
// first error is kept.
type options struct {
	call  string         // "producer", "receive", ...
	given map[string]any // not read yet
	names []string       // read
	uses  map[string]any // the options in force, for the result; nil if they are in none
	err   error
}

func readOptions(call string, v sobek.Value) (*options, error) {
	o := &options{call: call, given: map[string]any{}}
	if !given(v) {
		return o, nil
	}
	fields, ok := v.Export().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: options must be an object, not %s", call, v)
	}
	for name, value := range fields {
		if value != nil { // neither undefined nor null
			o.given[name] = value
		}
	}
	return o, nil
}

// textOf reads a string argument; "" if it is missing.
func textOf(call, argument string, v sobek.Value) (string, error) {
	if !given(v) {
		return "", nil
	}
	raw := v.Export()
	text, ok := raw.(string)
	if !ok {
		return "", fmt.Errorf("%s: %s must be a string, not %s", call, argument, driver.Show(raw))
	}
	return text, nil
}

// topicOf reads a topic's name.
func topicOf(call string, v sobek.Value) (string, error) {
	topic, err := textOf(call, "the topic's name", v)
	if err == nil && topic == "" {
		err = fmt.Errorf("%s: the topic's name is missing", call)
	}
	return topic, err
}

func (o *options) fail(err error) {
	if o.err == nil {
		o.err = fmt.Errorf("%s: %w", o.call, err)
	}
}

func (o *options) refuse(name string, raw any, allowed string) {
	o.fail(fmt.Errorf("option %q: %s is not %s", name, driver.Show(raw), allowed))
}

// take removes an option and returns its value.
func (o *options) take(name string) (raw any, ok bool) {
	o.names = append(o.names, name)
	raw, ok = o.given[name]
	delete(o.given, name)
	return raw, ok
}

// read returns an option, or def if it is not given or its conversion is not ok.
func read[T any](o *options, name string, def T, allowed string, convert func(raw any) (T, bool)) T {
	raw, ok := o.take(name)
	if !ok {
		if o.uses != nil && !reflect.ValueOf(def).IsZero() {
			o.uses[name] = def
		}
		return def
	}
	value, ok := convert(raw)
	if !ok {
		o.refuse(name, raw, allowed)
		return def
	}
	if o.uses != nil {
		o.uses[name] = raw
	}
	return value
}

func exact[T any](raw any) (value T, ok bool) {
	value, ok = raw.(T)
	return value, ok
}

func (o *options) text(name, def string) string { return read(o, name, def, "a string", exact[string]) }

func (o *options) boolean(name string) bool {
	return read(o, name, false, "true or false", exact[bool])
}

func (o *options) duration(name string, def time.Duration) time.Duration {
	const allowed = `a duration such as "500ms" or a number of milliseconds, 0 or more`
	return read(o, name, def, allowed, func(raw any) (time.Duration, bool) {
		d, ok := driver.ParseDuration(raw)
		return d, ok && d >= 0
	})
}

func (o *options) integer(name string, def, least, most int) int {
	allowed := fmt.Sprintf("an integer from %d to %d", least, most)
	return read(o, name, def, allowed, func(raw any) (int, bool) {
		n, ok := number(raw)
		return int(n), ok && n == math.Trunc(n) && n >= float64(least) && n <= float64(most)
	})
}

// required reads an integer that must be given.
func (o *options) required(name string, least, most int) int {
	if _, ok := o.given[name]; !ok {
		o.given[name] = nil // is refused
	}
	return o.integer(name, least, least, most)
}

func (o *options) number(name string, def, least, most float64) float64 {
	allowed := fmt.Sprintf("a number from %v to %v", least, most)
	return read(o, name, def, allowed, func(raw any) (float64, bool) {
		n, ok := number(raw)
		return n, ok && n >= least && n <= most
	})
}

func number(raw any) (float64, bool) {
	switch n := raw.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, !math.IsNaN(n)
	}
	return 0, false
}

// choice reads one of some texts. The first is the default.
func (o *options) choice(name string, all ...string) string {
	return read(o, name, all[0], "one of "+strings.Join(all, ", "), func(raw any) (string, bool) {
		text, ok := raw.(string)
		return text, ok && slices.Contains(all, text)
	})
}

// fields reads the options in an object.
func (o *options) fields(name string, raw any, read func(part *options)) {
	given, ok := raw.(map[string]any)
	if !ok {
		o.refuse(name, raw, "an object")
		return
	}
	part := &options{call: o.call + ": " + name, given: given, uses: map[string]any{}}
	read(part)
	for inner, value := range part.uses {
		o.uses[name+"."+inner] = value
	}
	if err := part.done(); o.err == nil {
		o.err = err
	}
}

// done returns the first error; an unknown option is one.
func (o *options) done() error {
	if o.err != nil {
		return o.err
	}
	for _, name := range slices.Sorted(maps.Keys(o.given)) {
		slices.Sort(o.names)
		return fmt.Errorf("%s: no option %q: known are %s", o.call, name, strings.Join(o.names, ", "))
	}
	return nil
}

// explain adds the module's own options to the driver's error about an unknown option.
func (o *options) explain(err error) error {
	var unknown *driver.UnknownOptionError
	switch {
	case !errors.As(err, &unknown):
	case unknown.Where != driver.InURL:
		unknown.Known = append(slices.Clone(o.names), unknown.Known...)
	case slices.Contains(o.names, unknown.Name):
		return fmt.Errorf("%s: option %q belongs in the options beside the URL, and not in its query", o.call, unknown.Name)
	}
	return fmt.Errorf("%s: %w", o.call, err)
}
