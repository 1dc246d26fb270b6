package driver

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Option is one thing that a user may set: in the URL's query, or in the options object of connect,
// producer, consumer or createTopic. Parsing, validation, defaults and documentation all come from
// here.
type Option struct {
	Name    string // camelCase, as JavaScript writes it
	Scope   Scope
	Type    Type
	Default string             // in the form that a URL would have; "" is the type's zero value
	Profile map[Profile]string // defaults that differ by profile
	Allowed []string           // the values of an Enum, in any case
	Instead string             // what an error adds to Allowed: which driver has another value, such as "; a stream is a topic of rabbitmq-stream"
	Min     int64              // the least Int, Size or Duration (in ns) allowed
	Max     int64              // the greatest; 0 is no limit
	Step    int64              // what an Int, Size or Duration (in ns) must be a multiple of; 0 is any
	Secret  bool               // never shown
	// Drops: the broker drops messages because of the option, received or not.
	Drops bool
	// Selects: a consumer with the option does not receive every message of the topic.
	Selects bool
	// Spends is the value with which the topic need not keep, for a group that comes later, what
	// was sent before; "" if there is none.
	Spends string
	// SendOnly: received messages do not have this property.
	SendOnly bool
	// Reorders: the broker delivers messages out of order because of it, by priority if a number,
	// later if a duration.
	Reorders bool
	// ZeroIsDefault: with 0 the broker decides, and any value of an existing topic is accepted.
	ZeroIsDefault bool
	ZeroMeans     any    // what 0 stands for, where that is known; nil where 0 is itself, or left to the broker
	Doc           string // one sentence, with units
}

// Scope is where an option applies.
type Scope uint8

// Scopes, a bit set.
const (
	OnConnect Scope = 1 << iota
	OnProducer
	OnConsumer
	OnTopic
	OnMessage // a property of one message; with OnProducer also of all messages of a producer that have none of their own
)

// Type is the type of an option's value.
type Type uint8

// Types, and what [Values] holds for each.
const (
	String   Type = iota // string
	Int                  // int64
	Bool                 // bool
	Duration             // time.Duration; a bare number is milliseconds, as everywhere in k6
	Size                 // int64 bytes; "64KiB", "1MB"
	Enum                 // string, one of Allowed
	List                 // []string; comma-separated in a URL
	Map                  // map[string]any: strings, bool, int64, float64; name=value in a URL, once for each
	Items                // []any: strings, and objects as Map has them or whose values are such; comma-separated strings in a URL
	File                 // string: a path, or the text of a PEM file; Target.File reads it
)

func (t Type) String() string {
	return [...]string{"string", "integer", "boolean", "duration", "size", "enum", "list", "object", "list", "file"}[t]
}

// Profile is a set of defaults: what to measure decides what a client should be tuned for.
type Profile string

// Profiles.
const (
	Latency    Profile = "latency"    // nothing waits in order to be batched; the default
	Throughput Profile = "throughput" // batches as the client's authors advise
	Durable    Profile = "durable"    // confirmed means replicated and, where the broker can, on disk
)

// ParseProfile checks the name of a profile; "" is [Latency].
func ParseProfile(s string) (Profile, error) {
	switch p := Profile(s); p {
	case "":
		return Latency, nil
	case Latency, Throughput, Durable:
		return p, nil
	}
	return "", fmt.Errorf("option \"profile\": %q is not one of latency, throughput, durable", s)
}

// Values holds a value for every option of a scope, of the Go type that [Type] names.
type Values map[string]any

// String gives a String, Enum or File option.
func (v Values) String(name string) string { s, _ := v[name].(string); return s }

// Int gives an Int or Size option.
func (v Values) Int(name string) int64 { n, _ := v[name].(int64); return n }

// Bool gives a Bool option.
func (v Values) Bool(name string) bool { b, _ := v[name].(bool); return b }

// Duration gives a Duration option.
func (v Values) Duration(name string) time.Duration { d, _ := v[name].(time.Duration); return d }

// List gives a List option.
func (v Values) List(name string) []string { l, _ := v[name].([]string); return l }

// Map gives a Map option.
func (v Values) Map(name string) map[string]any { m, _ := v[name].(map[string]any); return m }

// Items gives an Items option.
func (v Values) Items(name string) []any { l, _ := v[name].([]any); return l }

// Option finds an option by name, in any scope.
func (d *Driver) Option(name string) (Option, bool) {
	i := slices.IndexFunc(d.Options, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return Option{}, false
	}
	return d.Options[i], true
}

// Resolve gives every option of a scope its value: from given where it is named there, else the
// profile's default, else the option's. Names in given that belong to another scope of the driver,
// or to none, are errors.
func (d *Driver) Resolve(scope Scope, profile Profile, given map[string]any) (Values, error) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if o, ok := d.Option(name); !ok || o.Scope&scope == 0 {
			return nil, &UnknownOptionError{d.Name, name, " here", d.names(scope)}
		}
	}
	values := Values{}
	for _, o := range d.Options {
		if o.Scope&scope == 0 {
			continue
		}
		raw, ok := given[o.Name]
		if !ok {
			raw = o.defaultFor(profile)
		}
		value, err := o.Parse(raw)
		if err != nil {
			return nil, err
		}
		values[o.Name] = value
	}
	return values, nil
}

// Properties reads the properties of a message: nothing but what was given, and nil where that is
// nothing.
func (d *Driver) Properties(given map[string]any) (Values, error) {
	var values Values
	for _, name := range slices.Sorted(maps.Keys(given)) {
		o, ok := d.Option(name)
		if known := d.names(OnMessage)[1:]; len(known) == 0 {
			return nil, fmt.Errorf("option \"properties\": messages of %s have none: %w", d.Name, errors.ErrUnsupported)
		} else if !ok || o.Scope&OnMessage == 0 {
			return nil, &UnknownOptionError{d.Name, name, " in \"properties\"", known}
		}
		value, err := o.Parse(given[name])
		if err != nil {
			return nil, err
		}
		if values == nil {
			values = Values{}
		}
		values[name] = value
	}
	return values, nil
}

// names lists what may be given in a scope: the profile, and the options by name.
func (d *Driver) names(scope Scope) []string {
	var names []string
	for _, o := range d.Options {
		if o.Scope&scope != 0 {
			names = append(names, o.Name)
		}
	}
	slices.Sort(names)
	return append([]string{"profile"}, names...)
}

func (o Option) defaultFor(p Profile) string {
	if s, ok := o.Profile[p]; ok {
		return s
	}
	return o.Default
}

// Parse turns a value from a URL (a string) or from JavaScript (string, number, boolean, array)
// into the option's Go type.
func (o Option) Parse(raw any) (any, error) {
	fail := func(want string) (any, error) {
		shown := Show(raw)
		if o.Secret {
			shown = "the value given"
		}
		return nil, fmt.Errorf("option %q: %s is not %s", o.Name, shown, want)
	}
	switch o.Type {
	case String:
		if s, ok := raw.(string); ok {
			return s, nil
		}
		return fail("a string")
	case File:
		if s, ok := raw.(string); ok {
			return s, nil
		}
		return fail("the path of a file, or its text")
	case Enum:
		if s, ok := raw.(string); ok {
			if i := slices.IndexFunc(o.Allowed, func(one string) bool { return strings.EqualFold(one, s) }); i >= 0 {
				return o.Allowed[i], nil
			}
		}
		return fail("one of " + strings.Join(o.Allowed, ", ") + o.Instead)
	case Bool:
		if b, ok := parseBool(raw); ok {
			return b, nil
		}
		return fail("true or false")
	case Int:
		if n, ok := parseInt(raw); ok && o.within(n) {
			return n, nil
		}
		return fail("an integer " + o.limits())
	case Size:
		n, ok := parseSize(raw)
		if ok && o.within(n) {
			return n, nil
		}
		if ok {
			return fail("a size " + o.limits())
		}
		return fail(`a size such as 65536 or "64KiB"`)
	case Duration:
		t, ok := ParseDuration(raw)
		if ok && o.within(int64(t)) {
			return t, nil
		}
		if ok {
			return fail("a duration " + o.limits())
		}
		return fail(`a duration such as "500ms" or a number of milliseconds`)
	case List:
		if l, ok := parseList(raw); ok {
			return l, nil
		}
		for _, item := range items(raw) {
			if _, ok := item.(string); !ok {
				return nil, fmt.Errorf("option %q: %s in the list is not a string", o.Name, Show(item))
			}
		}
		return fail("a list of strings")
	case Map:
		if m, ok := parseMap(raw); ok {
			return m, nil
		}
		return fail("an object of strings, numbers and booleans, or a string name=value or a list of such")
	case Items:
		if l, ok := parseItems(raw); ok {
			return l, nil
		}
		return fail("a list of strings and objects")
	}
	panic("driver: option " + o.Name + " has no known type")
}

func items(raw any) []any { list, _ := raw.([]any); return list }

// Show gives a value that a URL or a script set as an error quotes it. Of a list or an object it
// says no more than that it is one: it may hold anything, itself included.
func Show(raw any) string {
	switch v := raw.(type) {
	case string:
		return strconv.Quote(v)
	case nil:
		return "nothing"
	case bool, int, int64, float64, time.Duration:
		return fmt.Sprint(v)
	case []any, []string:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "what was given"
}

func (o Option) within(n int64) bool {
	return n >= o.Min && (o.Max == 0 || n <= o.Max) && (o.Step == 0 || n%o.Step == 0)
}

// limits describes the limits of a number.
func (o Option) limits() string {
	show := func(n int64) string { return strconv.FormatInt(n, 10) }
	if o.Type == Duration {
		show = func(n int64) string { return time.Duration(n).String() }
	}
	text := "of at least " + show(o.Min)
	if o.Max != 0 {
		text = "from " + show(o.Min) + " to " + show(o.Max)
	}
	if o.Step != 0 {
		text += " in steps of " + show(o.Step)
	}
	return text
}

func parseBool(raw any) (bool, bool) {
	switch v := raw.(type) {
	case bool:
		return v, true
	case string:
		b, err := strconv.ParseBool(v)
		return b, err == nil || v == ""
	}
	return false, false
}

func parseInt(raw any) (int64, bool) {
	switch v := raw.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil || v == ""
	}
	return 0, false
}

func parseSize(raw any) (int64, bool) {
	s, isString := raw.(string)
	if !isString {
		return parseInt(raw)
	}
	unit := int64(1)
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}} {
		if number, ok := strings.CutSuffix(s, u.suffix); ok {
			s, unit = number, u.bytes
			break
		}
	}
	n, ok := parseInt(s)
	if !ok || n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, false
	}
	return n * unit, true
}

// ParseDuration reads a duration as k6 does: a string in Go's form, or a number of milliseconds,
// also within a string.
func ParseDuration(raw any) (time.Duration, bool) {
	var ms float64
	switch v := raw.(type) {
	case time.Duration:
		return v, true
	case int64:
		ms = float64(v)
	case int:
		ms = float64(v)
	case float64:
		ms = v
	case string:
		if v == "" {
			return 0, true
		}
		if d, err := time.ParseDuration(v); err == nil {
			return d, true
		}
		var err error
		if ms, err = strconv.ParseFloat(v, 64); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	ns := ms * float64(time.Millisecond)
	return time.Duration(ns), math.Abs(ns) < math.MaxInt64
}

func parseList(raw any) ([]string, bool) {
	switch v := raw.(type) {
	case []string:
		return v, true
	case string:
		if v == "" {
			return nil, true
		}
		return strings.Split(v, ","), true
	case []any:
		list := make([]string, 0, len(v))
		for _, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, false
			}
			list = append(list, s)
		}
		return list, true
	}
	return nil, false
}

// checkOptions panics where a driver's options contradict themselves.
func checkOptions(d *Driver) {
	seen := map[string]bool{}
	for _, o := range d.Options {
		if o.Name == "" || o.Scope == 0 || o.Doc == "" || seen[o.Name] {
			panic(fmt.Sprintf("driver %q: option %q needs a name of its own, a scope and a doc", d.Name, o.Name))
		}
		seen[o.Name] = true
		for _, p := range []Profile{Latency, Throughput, Durable} {
			if _, err := o.Parse(o.defaultFor(p)); err != nil {
				panic(fmt.Sprintf("driver %q: default of %v", d.Name, err))
			}
		}
	}
}

// Redact gives the values as a report may show them.
func (d *Driver) Redact(values Values) map[string]any {
	shown := make(map[string]any, len(values))
	for name, value := range values {
		o, _ := d.Option(name)
		switch {
		case o.Secret && value != "", o.Type == File && isText(values.String(name)):
			shown[name] = "(set)"
		case o.Type == Duration:
			shown[name] = values.Duration(name).String()
		default:
			shown[name] = value
		}
	}
	return shown
}
