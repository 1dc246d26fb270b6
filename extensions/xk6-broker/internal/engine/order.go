package engine

import (
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// reorderings are the options of a scope by which a broker delivers messages out of their order.
func reorderings(d *driver.Driver, scope driver.Scope) (all []driver.Option) {
	for _, o := range d.Options {
		if o.Reorders && o.Scope&scope != 0 {
			all = append(all, o)
		}
	}
	return all
}

// disorder notes that the topic has no order if one of the options has a value other than its default. A delay is added to what the end waits for.
func (t *Topic) disorder(r *Run, options []driver.Option, given driver.Values) {
	for _, o := range options {
		v, ok := given[o.Name]
		if !ok {
			continue
		}
		if usual, err := o.Parse(o.Default); err == nil && v == usual {
			continue
		}
		switch v {
		case int64(0), time.Duration(0):
			continue
		}
		t.unordered.Store(true)
		if d, ok := v.(time.Duration); ok {
			greatest(&r.delay, int64(d))
		}
	}
}

// given says whether an option that is like that has a value other than its default.
func given(d *driver.Driver, scope driver.Scope, values driver.Values, like func(driver.Option) bool) bool {
	return slices.ContainsFunc(d.Options, func(o driver.Option) bool {
		if o.Scope&scope == 0 || !like(o) {
			return false
		}
		usual, err := o.Parse(o.Default)
		v, ok := values[o.Name]
		return ok && (err != nil || v != usual)
	})
}
