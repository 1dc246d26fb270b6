package k6

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
)

const (
	maxSize = 1 << 30
	maxKeys = 1 << 24
)

// defaultSize is the default of a generated body, in bytes.
const defaultSize = 100

// payloadOf reads the option "payload" of produce. Size and keys are nil if they are not given.
func (p *producer) payloadOf(o *options, opts sobek.Value, seed uint64) (payload.Spec, error) {
	part, some := o.object("payload")
	spec := payload.Spec{Seed: seed, Random: part.number("random", 1)}
	spec.Size, spec.Keys = sizesOf(part, p.mode(true).Front()), keysOf(part)
	order := part.text("order", "")
	for _, name := range []string{"bodies", "headers", "properties"} {
		part.take(name)
	}
	if err := errors.Join(o.err, part.done()); err != nil || !some {
		return spec, err
	}
	var err error
	all := opts.ToObject(p.conn.in.vu.Runtime()).Get("payload").ToObject(p.conn.in.vu.Runtime())
	if v := all.Get("bodies"); given(v) {
		spec.Bodies, err = p.conn.in.bodiesOf(v)
	}
	if v := all.Get("headers"); given(v) && err == nil {
		spec.Headers, err = p.conn.headers(v)
	}
	if v := all.Get("properties"); given(v) && err == nil {
		spec.Properties, err = p.conn.properties(v)
	}
	switch {
	case err != nil:
	case spec.Size != nil && spec.Bodies != nil:
		err = errors.New(`options "size" and "bodies": given bodies have their sizes: give one of the two`)
	case order != "" && spec.Bodies == nil:
		err = errors.New(`option "order" needs "bodies"`)
	case order != "" && order != "in-turn" && order != "random":
		err = fmt.Errorf(`option "order": %q is not one of in-turn, random`, order)
	}
	spec.Shuffled = order == "random"
	if err != nil {
		return spec, fmt.Errorf("%s: %w", part.call, err)
	}
	return spec, nil
}

// sizesOf reads a number of bytes, a distribution, or a list of sizes with weights. Front is the
// default minimum of a distribution.
func sizesOf(o *options, front int) payload.Sizes {
	switch raw := o.given["size"].(type) {
	case nil:
		o.take("size")
		return nil
	case []any:
		o.take("size")
		return mixedOf(o, raw)
	case map[string]any:
		d, _ := o.object("size")
		defer o.fold(d)
		switch name := d.text("distribution", ""); name {
		case "uniform":
			least := d.integer("min", front, 0, maxSize)
			return payload.Uniform(least, d.required("max", least, maxSize))
		case "normal":
			mean, deviation := d.required("mean", 0, maxSize), d.required("deviation", 1, maxSize)
			least := d.integer("min", front, 0, maxSize)
			most := d.integer("max", min(maxSize, max(least, mean+6*deviation)), least, maxSize)
			return payload.Normal(float64(mean), float64(deviation), least, most)
		default:
			d.fail("distribution", name, "one of uniform, normal")
		}
		return payload.Fixed(0)
	}
	return payload.Fixed(o.integer("size", defaultSize, 0, maxSize))
}

// mixedOf reads a list of {size, weight}.
func mixedOf(o *options, list []any) payload.Sizes {
	var sizes []int
	var weights []float64
	sum := 0.0
	for i, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			o.fail("size", item, fmt.Sprintf("{ size, weight }, as the entry %d of a list has to be", i))
			return payload.Fixed(0)
		}
		entry := &options{call: fmt.Sprintf("%s: size %d", o.call, i), given: fields}
		sizes = append(sizes, entry.required("size", 0, maxSize))
		weight := entry.number("weight", 1)
		if weight < 0 || weight > 1e300 {
			entry.fail("weight", weight, "a number of 0 or more")
		}
		weights = append(weights, weight)
		sum += weight
		o.fold(entry)
	}
	if o.err == nil && (len(list) == 0 || sum <= 0) {
		o.fail("size", list, "a list of { size, weight } of which one has a weight above 0")
	}
	if o.err != nil {
		return payload.Fixed(0)
	}
	return payload.Mixed(sizes, weights)
}

// keysOf reads a number of keys, in turn, or a distribution.
func keysOf(o *options) payload.Keys {
	if _, ok := o.given["keys"].(map[string]any); !ok {
		if n := o.integer("keys", 0, 0, maxKeys); n > 0 {
			return payload.InTurn(n)
		}
		return nil
	}
	d, _ := o.object("keys")
	defer o.fold(d)
	count := d.required("count", 1, maxKeys)
	switch name := d.text("distribution", ""); name {
	case "uniform":
		return payload.AtRandom(count)
	case "zipf":
		exponent := d.number("exponent", 1)
		if exponent < 0 || exponent > 100 {
			d.fail("exponent", exponent, "a number from 0 to 100")
			return nil
		}
		return payload.Zipf(count, exponent)
	default:
		d.fail("distribution", name, "one of uniform, zipf")
	}
	return nil
}

// batchOf reads the number of messages in one call: a maximum, or the limits of a random number.
func batchOf(o *options) (least, most int) {
	if _, ok := o.given["batch"].(map[string]any); !ok {
		return 0, o.integer("batch", 0, 0, maxBatch)
	}
	d, _ := o.object("batch")
	defer o.fold(d)
	least = d.integer("min", 1, 1, maxBatch)
	return least, d.required("max", least, maxBatch)
}

const maxBatch = 1 << 16

// describePayload adds the options of a loop's messages for the result.
func describePayload(spec *payload.Spec, shown map[string]any) {
	if spec.Bodies != nil {
		order := "in turn"
		if spec.Shuffled {
			order = "at random"
		}
		shown["payload.bodies"] = fmt.Sprintf("%d, %s", len(spec.Bodies), order)
	} else {
		shown["payload.size"], shown["payload.random"] = numberOrText(spec.Size.String()), spec.Random
	}
	shown["payload.keys"] = 0
	if spec.Keys != nil {
		shown["payload.keys"] = numberOrText(spec.Keys.String())
	}
	if len(spec.Headers) > 0 {
		var names []string
		for _, h := range spec.Headers { // values can be secrets
			names = append(names, h.Name)
		}
		slices.Sort(names)
		shown["payload.headers"] = fmt.Sprint(names)
	}
	for name, value := range spec.Properties {
		shown["payload.properties."+name] = driver.Show(value)
	}
}

// numberOrText returns the number of a text, or the text.
func numberOrText(s string) any {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return s
}
