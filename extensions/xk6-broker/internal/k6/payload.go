package k6

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
)

// This file reads the option payload of produce.

const (
	maxSize     = 1 << 30
	maxKeys     = 1 << 24
	maxWeight   = 1e300
	maxExponent = 100
)

// defaultSize is the default of a generated body, in bytes.
const defaultSize = 100

// payloadOf reads the option. Size and keys are nil if they are not given.
func (p *producer) payloadOf(o *options, opts sobek.Value, seed uint64) payload.Spec {
	spec := payload.Spec{Seed: seed, Random: 1}
	raw, ok := o.take("payload")
	if !ok {
		return spec
	}
	o.fields("payload", raw, func(part *options) {
		rt := p.conn.in.vu.Runtime()
		script := opts.ToObject(rt).Get("payload").ToObject(rt)
		spec.Random = part.number("random", 1, 0, 1)
		spec.Size, spec.Keys = sizesOf(part, p.mode(true).Front()), keysOf(part)
		spec.Shuffled = part.choice("order", "in-turn", "random") == "random"
		spec.Bodies = convert(part, script, "bodies", p.conn.in.bodiesOf)
		spec.Headers = convert(part, script, "headers", p.conn.headers)
		spec.Properties = convert(part, script, "properties", p.conn.properties)
		switch {
		case spec.Size != nil && spec.Bodies != nil:
			part.fail(errors.New(`options "size" and "bodies": given bodies have their sizes: give one of the two`))
		case spec.Shuffled && spec.Bodies == nil:
			part.fail(errors.New(`option "order" needs "bodies"`))
		}
	})
	return spec
}

// convert reads an option from the script's own object.
func convert[T any](o *options, script *sobek.Object, name string, read func(sobek.Value) (T, error)) (value T) {
	o.take(name)
	raw := script.Get(name)
	if !given(raw) {
		return value
	}
	o.uses[name] = "given"
	value, err := read(raw)
	if err != nil {
		o.fail(err)
	}
	return value
}

// sizesOf reads a number of bytes, a distribution, or a list of sizes with weights. Front is the
// default minimum of a distribution.
func sizesOf(o *options, front int) (sizes payload.Sizes) {
	switch raw := o.given["size"].(type) {
	case []any:
		return mixedOf(o, raw)
	case map[string]any:
		o.take("size")
		o.fields("size", raw, func(d *options) {
			d.choice("distribution", "uniform")
			least := d.integer("min", front, 0, maxSize)
			sizes = payload.Uniform(least, d.required("max", least, maxSize))
		})
		return sizes
	case nil:
		o.take("size")
		return nil
	}
	return payload.Fixed(o.required("size", 0, maxSize))
}

// mixedOf reads a list of {size, weight}.
func mixedOf(o *options, list []any) payload.Sizes {
	o.take("size")
	sizes, weights := make([]int, len(list)), make([]float64, len(list))
	for i, item := range list {
		o.fields(fmt.Sprintf("size[%d]", i), item, func(entry *options) {
			sizes[i], weights[i] = entry.required("size", 0, maxSize), entry.number("weight", 1, 0, maxWeight)
		})
	}
	if len(list) == 0 || slices.Max(weights) == 0 {
		o.refuse("size", list, "a list of { size, weight } with a weight above 0")
		return nil
	}
	return payload.Mixed(sizes, weights)
}

// keysOf reads a number of keys, in turn, or a distribution.
func keysOf(o *options) (keys payload.Keys) {
	if raw, ok := o.given["keys"].(map[string]any); ok {
		o.take("keys")
		o.fields("keys", raw, func(d *options) {
			count := d.required("count", 1, maxKeys)
			if d.choice("distribution", "uniform", "zipf") == "uniform" {
				keys = payload.AtRandom(count)
				return
			}
			keys = payload.Zipf(count, d.number("exponent", 1, 0, maxExponent))
		})
		return keys
	}
	if count := o.integer("keys", 0, 0, maxKeys); count > 0 {
		return payload.InTurn(count)
	}
	return nil
}

// bodiesOf reads a list of bodies, such as a SharedArray of k6.
func (in *instance) bodiesOf(v sobek.Value) ([][]byte, error) {
	if !isArray(v) {
		return nil, errors.New(`option "bodies": a list of bodies is needed`)
	}
	list := v.ToObject(in.vu.Runtime())
	all := make([][]byte, list.Get("length").ToInteger())
	if len(all) == 0 {
		return nil, errors.New(`option "bodies": the list is empty`)
	}
	for i := range all {
		var err error
		if all[i], err = in.bytesOf(list.Get(strconv.Itoa(i))); err != nil {
			return nil, fmt.Errorf(`option "bodies": body %d: %w`, i, err)
		}
	}
	return all, nil
}
