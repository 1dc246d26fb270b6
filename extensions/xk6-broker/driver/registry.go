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

// Register makes a driver known. It panics where the name, a scheme or an option is missing or
// already taken, or where features contradict one another: that is a mistake in a program, found at
// its start.
func Register(d Driver) {
	if d.Name == "" || len(d.Schemes) == 0 || d.Open == nil {
		panic(fmt.Sprintf("driver %q: Name, Schemes and Open are required", d.Name))
	}
	if claimed := d.Features.Position != NoPosition || d.Features.Timestamps; claimed != (d.Place != nil) {
		panic(fmt.Sprintf("driver %q: Place goes with Features.Position or Features.Timestamps", d.Name))
	}
	if d.Features.Start == 0 && d.Features != d.Features.ofSending() {
		panic(fmt.Sprintf("driver %q: without Features.Start it only sends, and claims what only consumers have", d.Name))
	}
	d.Correlation = cmp.Or(d.Correlation, Correlated)
	checkOptions(&d)
	registry.Lock()
	for _, s := range d.Schemes {
		if other, taken := registry.byScheme[s]; taken {
			registry.Unlock()
			panic(fmt.Sprintf("driver %q: scheme %q is taken by %q", d.Name, s, other.Name))
		}
		if registry.byScheme == nil {
			registry.byScheme = map[string]*Driver{}
		}
		registry.byScheme[s] = &d
	}
	watchers := slices.Clone(registry.watchers)
	registry.Unlock()
	for _, w := range watchers {
		w(&d)
	}
}

// Watch calls f for every driver, those registered already and those to come.
func Watch(f func(*Driver)) {
	registry.Lock()
	registry.watchers = append(registry.watchers, f)
	registry.Unlock()
	for _, d := range Drivers() {
		f(d)
	}
}

// Lookup finds the driver for a URL scheme.
func Lookup(scheme string) (*Driver, error) {
	registry.RLock()
	defer registry.RUnlock()
	if d, ok := registry.byScheme[scheme]; ok {
		return d, nil
	}
	known := slices.Sorted(maps.Keys(registry.byScheme))
	if len(known) == 0 {
		return nil, fmt.Errorf("no driver for scheme %q: this k6 was built without any driver", scheme)
	}
	return nil, fmt.Errorf("no driver for scheme %q%s: this k6 knows %s", scheme, Suggest(scheme, known), strings.Join(known, ", "))
}

// Drivers lists all drivers by name.
func Drivers() []*Driver {
	registry.RLock()
	defer registry.RUnlock()
	seen := map[*Driver]bool{}
	for _, d := range registry.byScheme {
		seen[d] = true
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b *Driver) int { return cmp.Compare(a.Name, b.Name) })
}
