package k6

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// options reads an options object of a script: each option is taken by name and type, and the rest
// is an error.
type options struct {
	call  string // "producer", "receive", ...
	given map[string]any
	known []string
	err   error
}

func readOptions(call string, v sobek.Value) (*options, error) {
	o := &options{call: call, given: map[string]any{}}
	if v == nil || sobek.IsUndefined(v) || sobek.IsNull(v) {
		return o, nil
	}
	given, ok := v.Export().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: options must be an object, not %s", call, v)
	}
	for name, value := range given {
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

// topicOf reads a topic's name. The texts "undefined" and "null" come from a variable without a
// value.
func topicOf(call string, v sobek.Value) (string, error) {
	topic, err := textOf(call, "the topic's name", v)
	switch {
	case err != nil && isArray(v):
		err = fmt.Errorf("%w: call it once for each topic", err)
	case err != nil:
		err = fmt.Errorf("%w: the name comes first, and options after it: %s('orders', { ... })", err, call)
	case topic == "", topic == "undefined", topic == "null":
		err = fmt.Errorf("%s: the topic's name is missing", call)
	}
	return topic, err
}

// take removes an option and returns its value.
func (o *options) take(name string) (any, bool) {
	o.known = append(o.known, name)
	raw, ok := o.given[name]
	delete(o.given, name)
	return raw, ok
}

func (o *options) fail(name string, raw any, want string) {
	if o.err == nil {
		o.err = fmt.Errorf("%s: option %q: %s is not %s", o.call, name, driver.Show(raw), want)
	}
}

func (o *options) duration(name string, def time.Duration) time.Duration {
	raw, ok := o.take(name)
	if !ok {
		return def
	}
	d, ok := driver.ParseDuration(raw)
	if !ok || d < 0 {
		o.fail(name, raw, `a duration such as "500ms" or a number of milliseconds, 0 or more`)
	}
	return d
}

func (o *options) integer(name string, def, least, most int) int {
	raw, ok := o.take(name)
	if !ok {
		return def
	}
	n, ok := number(raw)
	if !ok || n != math.Trunc(n) || n < float64(least) || n > float64(most) {
		o.fail(name, raw, fmt.Sprintf("an integer from %d to %d", least, most))
		return def
	}
	return int(n)
}

// required reads an integer that must be given.
func (o *options) required(name string, least, most int) int {
	if _, ok := o.given[name]; !ok && o.err == nil {
		o.known = append(o.known, name)
		o.err = fmt.Errorf("%s: option %q is missing: an integer from %d to %d", o.call, name, least, most)
		return least
	}
	return o.integer(name, least, least, most)
}

// fold takes over the errors of an option that is an object.
func (o *options) fold(part *options) {
	if err := part.done(); err != nil && o.err == nil {
		o.err = err
	}
}

func (o *options) number(name string, def float64) float64 {
	raw, ok := o.take(name)
	if !ok {
		return def
	}
	n, ok := number(raw)
	if !ok {
		o.fail(name, raw, "a number")
	}
	return n
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

func (o *options) text(name, def string) string {
	raw, ok := o.take(name)
	if !ok {
		return def
	}
	s, ok := raw.(string)
	if !ok {
		o.fail(name, raw, "a string")
	}
	return s
}

func (o *options) boolean(name string) bool {
	raw, ok := o.take(name)
	if !ok {
		return false
	}
	b, ok := raw.(bool)
	if !ok {
		o.fail(name, raw, "true or false")
	}
	return b
}

func (o *options) object(name string) (*options, bool) {
	raw, ok := o.take(name)
	if !ok {
		return &options{call: o.call + ": " + name, given: map[string]any{}}, false
	}
	given, isObject := raw.(map[string]any)
	if !isObject {
		o.fail(name, raw, "an object")
	}
	return &options{call: o.call + ": " + name, given: given}, true
}

// rest returns the options that are left: those of the driver.
func (o *options) rest() (map[string]any, error) {
	return maps.Clone(o.given), o.err
}

// done returns the first error; an unknown option is one.
func (o *options) done() error {
	if o.err != nil {
		return o.err
	}
	for _, name := range slices.Sorted(maps.Keys(o.given)) {
		slices.Sort(o.known)
		return fmt.Errorf("%s: no option %q: known are %s", o.call, name, strings.Join(o.known, ", "))
	}
	return nil
}

// explain adds the module's own options to the driver's error about an unknown option.
func (o *options) explain(err error) error {
	var unknown *driver.UnknownOptionError
	switch {
	case !errors.As(err, &unknown):
	case unknown.Where != driver.InURL:
		unknown.Known = append(slices.Clone(o.known), unknown.Known...)
	case slices.Contains(o.known, unknown.Name):
		return fmt.Errorf("%s: option %q belongs in the options beside the URL, and not in its query", o.call, unknown.Name)
	}
	return fmt.Errorf("%s: %w", o.call, err)
}
