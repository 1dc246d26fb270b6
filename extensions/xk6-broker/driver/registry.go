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
// features contradict each other, because these are mistakes of a program.
func Register(d Driver) {
	if d.Name == "" || len(d.Schemes) == 0 || d.Open == nil {
		panic(fmt.Sprintf("driver %q: Name, Schemes and Open are required", d.Name))
	}
	if claimed := d.Features.Position != NoPosition || d.Features.Timestamps; claimed != (d.Place != nil) {
		panic(fmt.Sprintf("driver %q: Place goes with Features.Position or Features.Timestamps", d.Name))
	}
	d.Correlation = cmp.Or(d.Correlation, Correlated)
	checkOptions(&d)
	registry.Lock()
	defer registry.Unlock()
	for _, s := range d.Schemes {
		if other, taken := registry.byScheme[s]; taken {
			panic(fmt.Sprintf("driver %q: scheme %q is taken by %q", d.Name, s, other.Name))
		}
	}
	if registry.byScheme == nil {
		registry.byScheme = map[string]*Driver{}
	}
	for _, s := range d.Schemes {
		registry.byScheme[s] = &d
	}
	for _, notify := range registry.watchers {
		notify(&d)
	}
}

// Watch calls f for every driver, those already registered and later ones. f must not call this
// package's functions for all drivers.
func Watch(f func(*Driver)) {
	for _, d := range Drivers() {
		f(d)
	}
	registry.Lock()
	defer registry.Unlock()
	registry.watchers = append(registry.watchers, f)
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
