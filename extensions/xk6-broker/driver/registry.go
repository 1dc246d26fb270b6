package driver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

var registry struct {
	sync.RWMutex
	byScheme map[string]*Driver
	watchers []func(*Driver)
}

// Register adds a driver. It panics if the name, a scheme or an option is missing or taken, or if
// features contradict each other: these are mistakes of a program, found at its start.
func Register(d Driver) {
	if d.Name == "" || len(d.Schemes) == 0 || d.Open == nil {
		panic(fmt.Sprintf("driver %q: Name, Schemes and Open are required", d.Name))
	}
	if claimed := d.Features.Position != NoPosition || d.Features.Timestamps; claimed != (d.Place != nil) {
		panic(fmt.Sprintf("driver %q: Place goes with Features.Position or Features.Timestamps", d.Name))
	}
	if d.Features.Start == 0 && d.Features != d.Features.ofSending() {
		panic(fmt.Sprintf("driver %q: without Features.Start it only sends, and has no features of consumers", d.Name))
	}
	d.Correlation = cmp.Or(d.Correlation, Correlated)
	checkOptions(&d)
	for _, notify := range add(&d) {
		notify(&d)
	}
}

// add adds a driver and returns the functions to notify.
func add(d *Driver) []func(*Driver) {
	registry.Lock()
	defer registry.Unlock()
	if registry.byScheme == nil {
		registry.byScheme = map[string]*Driver{}
	}
	for _, s := range d.Schemes {
		if other, taken := registry.byScheme[s]; taken {
			panic(fmt.Sprintf("driver %q: scheme %q is taken by %q", d.Name, s, other.Name))
		}
		registry.byScheme[s] = d
	}
	return slices.Clone(registry.watchers)
}

// Watch calls f for every driver, those already registered and later ones.
func Watch(f func(*Driver)) {
	registry.Lock()
	registry.watchers = append(registry.watchers, f)
	registry.Unlock()
	for _, d := range Drivers() {
		f(d)
	}
}

// Lookup returns the driver of a URL scheme.
func Lookup(scheme string) (*Driver, error) {
	registry.RLock()
	defer registry.RUnlock()
	if d, ok := registry.byScheme[scheme]; ok {
		return d, nil
	}
	all := slices.Sorted(maps.Keys(registry.byScheme))
	return nil, fmt.Errorf("no driver for scheme %q: this k6 knows %s", scheme, strings.Join(all, ", "))
}

// Drivers returns all drivers, sorted by name.
func Drivers() []*Driver {
	registry.RLock()
	defer registry.RUnlock()
	all := slices.SortedFunc(maps.Values(registry.byScheme), func(a, b *Driver) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Compact(all)
}
