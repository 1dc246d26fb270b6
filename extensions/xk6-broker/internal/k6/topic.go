package k6

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// newTopic is a topic that a script creates.
type newTopic struct {
	driver.TopicSpec

	uses  map[string]any // what a result says of its options
	asked []string       // the options that the script or the URL gives, partitions and replicas among them: of the others any value will do
}

func (c *connection) createTopic(name, opts sobek.Value) (*sobek.Promise, error) {
	topic, err := topicOf("createTopic", name)
	if err != nil {
		return nil, err
	}
	o, err := readOptions("createTopic", opts)
	if err != nil {
		return nil, err
	}
	var t newTopic
	for _, option := range []string{"partitions", "replicas"} {
		if _, asked := o.given[option]; asked {
			t.asked = append(t.asked, option)
		}
	}
	t.Name, t.Partitions, t.Replicas = topic, o.integer("partitions", 1, 1, 1<<20), o.integer("replicas", 1, 1, 1<<10)
	given, err := o.rest()
	if err != nil {
		return nil, err
	}
	if t.Options, t.uses, err = c.resolve(driver.OnTopic, given); err != nil {
		return nil, o.explain(err)
	}
	t.asked = append(t.asked, c.address.Asked(driver.OnTopic, given)...)
	return c.admin("create topic "+topic, together.once, func(ctx context.Context, a driver.Admin) error {
		if err := a.CreateTopic(ctx, t.TopicSpec); err != nil {
			return err
		}
		if err := c.describe(ctx, a, &t); err != nil {
			return err
		}
		made := c.in.run.Topic(c.address, topic)
		made.Use("topic", t.uses)
		made.Created(t.TopicSpec)
		return nil
	}), nil
}

// describe notes what the broker has of a topic: it may have been there before. One that is not as it was asked for is an error, as a test
// of it would measure something else than its script says. What a broker does not tell is not known, and not said.
func (c *connection) describe(ctx context.Context, a driver.Admin, t *newTopic) error {
	describer, ok := a.(driver.TopicDescriber)
	if !ok { // then nobody says how many partitions and copies there are
		return nil
	}
	has, err := describer.DescribeTopic(ctx, t.Name)
	if err != nil { // the topic is there all the same
		c.in.run.logger.WithError(err).Warnf("createTopic: what %s is like is not known", t.Name)
	} else if err := t.differs(c.address.Driver, has); err != nil {
		return err
	}
	shown := c.address.Driver.Redact(has.Options)
	for name := range t.Options {
		switch value, told := shown[name]; {
		case !told:
			delete(t.uses, name)
		case !slices.Contains([]reflect.Kind{reflect.Slice, reflect.Map}, reflect.ValueOf(value).Kind()): // of which the broker may have many more than matter
			t.uses[name] = value
		}
	}
	if has.Replicas > 0 {
		t.uses["replicas"] = has.Replicas
	}
	if has.Partitions > 0 {
		t.uses["partitions"] = has.Partitions
	}
	return nil
}

// differs is an error where a topic is not as it was asked for.
func (t *newTopic) differs(of *driver.Driver, has driver.TopicInfo) error {
	all := maps.Clone(has.Options)
	if all == nil {
		all = driver.Values{}
	}
	wanted := maps.Clone(t.Options)
	all["replicas"] = has.Replicas
	if has.Partitions > 0 {
		all["partitions"] = has.Partitions
	}
	wanted["partitions"], wanted["replicas"] = t.Partitions, t.Replicas
	var errs []error
	for _, name := range t.asked {
		value, told := all[name]
		if !told {
			continue
		}
		option, _ := of.Option(name)
		for _, d := range differences(option, value, wanted[name]) {
			errs = append(errs, &driver.OptionError{Name: name, Err: fmt.Errorf("%s exists %s", t.Name, d)})
		}
	}
	return errors.Join(errs...)
}

// differences says how a value is not what was asked for: of a list, what of it is not there. A default that only the broker knows is any value.
func differences(o driver.Option, has, asked any) (all []string) {
	if o.ZeroMeans != nil && reflect.ValueOf(asked).IsZero() {
		asked = o.ZeroMeans
	}
	list, isList := asked.([]string)
	items, _ := has.([]string)
	if entries, isMap := asked.(map[string]any); isMap {
		there, _ := has.(map[string]any)
		list, items, isList = driver.Pairs(entries), driver.Pairs(there), true
	}
	switch {
	case isList:
		for _, item := range list {
			if d := lacks(items, item); d != "" {
				all = append(all, d)
			}
		}
	case has != asked && (!o.ZeroIsDefault || !reflect.ValueOf(asked).IsZero()):
		all = append(all, fmt.Sprintf("with %v, asked for %v", has, asked))
	}
	return all
}

// lacks says what a list has instead of an item; "" where it has it.
func lacks(list []string, item string) string {
	name, _, named := strings.Cut(item, "=")
	instead := "without " + item
	for _, other := range list {
		if unordered(other) == unordered(item) {
			return ""
		}
		if named && strings.HasPrefix(other, name+"=") {
			instead = fmt.Sprintf("with %s, asked for %s", other, item)
		}
	}
	return instead
}

// unordered is an item such as cleanup.policy=delete,compact, whose value is a list that may be in any order.
func unordered(item string) string {
	name, value, _ := strings.Cut(item, "=")
	values := strings.Split(value, ",")
	slices.Sort(values)
	return name + "=" + strings.Join(values, ",")
}
