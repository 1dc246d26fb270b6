package driver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Option is a setting of the user: in the URL's query, or in the options object of connect,
// producer, consumer or createTopic. It defines parsing, limits, defaults and documentation.
type Option struct {
	Name    string // camelCase
	Scope   Scope
	Type    Type
	Default string             // as in a URL; "" is the type's zero value
	Profile map[Profile]string // defaults that differ by profile
	Allowed []string           // the values of an Enum, in any case
	Min     int64              // of an Int, Size or Duration (ns)
	Max     int64              // 0 is no limit
	Step    int64              // values are multiples of it; 0 is no rule
	Secret  bool               // never shown
	// Selects: a consumer with the option does not receive every message of the topic.
	Selects bool
	// Spends is the value with which the topic may drop messages before a later group reads them; ""
	// if there is none.
	Spends string
	// SendOnly: received messages do not have this property.
	SendOnly bool
	// Reorders: the broker delivers messages out of order because of the option.
	Reorders bool
	// ZeroIsDefault: with 0 the broker decides, and any value of an existing topic is accepted.
	ZeroIsDefault bool
	Doc           string // one sentence, with units
}

// Scope is a bit set of the places where an option applies.
type Scope uint8

// The scopes. With both OnProducer and OnMessage an option is the producer's default for messages
// that do not set it.
const (
	OnConnect Scope = 1 << iota
	OnProducer
	OnConsumer
	OnTopic
	OnMessage // a property of one message
)

// Type is the type of an option's value.
type Type uint8

// The types, and the Go type in [Values].
const (
	String   Type = iota // string
	Int                  // int64
	Bool                 // bool
	Duration             // time.Duration; a number is milliseconds, as in k6
	Size                 // int64 bytes; "64KiB", "1MB"
	Enum                 // string, one of Allowed
	List                 // []string; comma-separated in a URL
	Map                  // map[string]any of string, bool, int64, float64; name=value in a URL, repeated
	File                 // string: a path, or the text of a PEM file; see [Target.File]
)

func (t Type) String() string {
	return [...]string{"string", "integer", "boolean", "duration", "size", "enum", "list", "object", "file"}[t]
}

// Profile is a set of defaults.
type Profile string

// The profiles.
const (
	Latency    Profile = "latency"    // the default: nothing waits for a batch
	Throughput Profile = "throughput" // batches as the client's authors recommend
	Durable    Profile = "durable"    // confirmed means replicated and, if the broker can, on disk
)

// profile is an option of every driver.
var profile = Option{
	Name: "profile", Scope: OnConnect | OnProducer | OnConsumer | OnTopic, Type: Enum, Default: string(Latency),
	Allowed: []string{string(Latency), string(Throughput), string(Durable)},
}

// Option returns the option with this name, in any scope.
func (d *Driver) Option(name string) (Option, bool) {
	for _, o := range d.Options {
		if o.Name == name {
			return o, true
		}
	}
	return profile, name == profile.Name
}

// find returns an option of one of the scopes, or an [UnknownOptionError] for this place.
func (d *Driver) find(name string, scopes Scope, where string) (Option, error) {
	o, ok := d.Option(name)
	if !ok || o.Scope&scopes == 0 {
		return o, &UnknownOptionError{d.Name, name, where, d.names(scopes)}
	}
	return o, nil
}

// names returns the names of the options of the scopes, sorted behind the profile.
func (d *Driver) names(scopes Scope) []string {
	var names []string
	for _, o := range d.Options {
		if o.Scope&scopes != 0 {
			names = append(names, o.Name)
		}
	}
	slices.Sort(names)
	if profile.Scope&scopes != 0 {
		names = append([]string{profile.Name}, names...)
	}
	return names
}

// parse returns the values of given options of a scope.
func (d *Driver) parse(scope Scope, where string, given map[string]any) (Values, error) {
	values := make(Values, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		o, err := d.find(name, scope, where)
		if err != nil {
			return nil, err
		}
		if values[name], err = o.Parse(given[name]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Resolve returns a value for every option of a scope: from given, else the profile's default, else
// the option's. A name in given that is not of this scope is an error.
func (d *Driver) Resolve(scope Scope, p Profile, given map[string]any) (Values, error) {
	values, err := d.parse(scope, " here", given)
	if err != nil {
		return nil, err
	}
	for _, o := range d.Options {
		if _, set := values[o.Name]; set || o.Scope&scope == 0 {
			continue
		}
		if values[o.Name], err = o.Parse(o.defaultFor(p)); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (o Option) defaultFor(p Profile) string {
	if s, ok := o.Profile[p]; ok {
		return s
	}
	return o.Default
}

// Properties returns the given properties of a message; nil if there are none.
func (d *Driver) Properties(given map[string]any) (Values, error) {
	if len(given) == 0 {
		return nil, nil
	}
	if len(d.names(OnMessage)) == 0 {
		return nil, fmt.Errorf("option \"properties\": messages of %s have none: %w", d.Name, errors.ErrUnsupported)
	}
	return d.parse(OnMessage, ` in "properties"`, given)
}

// Redact returns the values as reports show them.
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

// checkOptions panics if the options of a driver contradict themselves.
func checkOptions(d *Driver) {
	seen := map[string]bool{}
	for _, o := range d.Options {
		if o.Name == "" || o.Scope == 0 || o.Doc == "" || seen[o.Name] {
			panic(fmt.Sprintf("driver %q: option %q needs a name of its own, a scope and a doc", d.Name, o.Name))
		}
		seen[o.Name] = true
		for _, p := range profile.Allowed {
			if _, err := o.Parse(o.defaultFor(Profile(p))); err != nil {
				panic(fmt.Sprintf("driver %q: default of %v", d.Name, err))
			}
		}
	}
}
