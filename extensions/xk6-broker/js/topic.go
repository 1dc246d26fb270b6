package js

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// newTopic is a topic that a script creates.
type newTopic struct {
	driver.TopicSpec

	uses  map[string]any // what a result says of its options
	asked []string       // the options that the script or the URL gives, partitions and replicas among them: of the others any value will do
}

func (c *connection) createTopic(topic string, opts sobek.Value) (*sobek.Promise, error) {
	o, err := readOptions("createTopic", opts)
	if err != nil {
		return nil, err
	}
	var t newTopic
	for _, name := range []string{"partitions", "replicas"} {
		if _, asked := o.given[name]; asked {
			t.asked = append(t.asked, name)
		}
	}
	t.Name, t.Partitions, t.Replicas = topic, o.integer("partitions", 1, 1, 1<<20), o.integer("replicas", 1, 1, 1<<10)
	given, err := o.rest()
	if err = errors.Join(err, checkTopic("createTopic", topic)); err != nil {
		return nil, err
	}
	if t.Options, t.uses, err = c.resolve(driver.OnTopic, given); err != nil {
		return nil, o.explain(err)
	}
	t.asked = append(t.asked, c.address.Asked(driver.OnTopic, given)...)
	return c.admin("create topic "+topic, func(ctx context.Context, a driver.Admin) error {
		if err := a.CreateTopic(ctx, t.TopicSpec); err != nil {
			return err
		}
		if err := c.describe(ctx, a, &t); err != nil {
			return err
		}
		made := c.in.run.Topic(c.address, topic)
		made.Use("topic", t.uses)
		c.in.run.Created(made, t.TopicSpec)
		return nil
	}), nil
}

// describe notes what the broker has of a topic: it may have been there before. One that is not as it was asked for is an error, as a test
// of it would measure something else than its script says. A broker that does not say has no partitions.
func (c *connection) describe(ctx context.Context, a driver.Admin, t *newTopic) error {
	describer, ok := a.(driver.TopicDescriber)
	if !ok {
		t.uses["replicas"] = t.Replicas
		return nil
	}
	has, err := describer.DescribeTopic(ctx, t.Name)
	if err != nil { // the topic is there all the same
		c.in.run.logger.WithError(err).Warnf("createTopic: what %s is like is not known", t.Name)
		return nil
	}
	if err := t.differs(has); err != nil {
		return err
	}
	for name, value := range c.address.Driver.Redact(has.Options) {
		if _, list := has.Options[name].([]string); !list { // of which the broker may have many more than matter
			t.uses[name] = value
		}
	}
	t.uses["replicas"] = has.Replicas
	if has.Partitions > 0 {
		t.uses["partitions"] = has.Partitions
	}
	return nil
}

// differs is an error where a topic is not as it was asked for.
func (t *newTopic) differs(has driver.TopicInfo) error {
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
		if value, told := all[name]; told && !covers(value, wanted[name]) {
			errs = append(errs, &driver.OptionError{Name: name, Err: fmt.Errorf("%s exists with %v, asked for %v", t.Name, value, wanted[name])})
		}
	}
	return errors.Join(errs...)
}

// covers tells whether a value is what was asked for: of a list, that all of it is there. A number or a time of 0 leaves it to the broker.
func covers(has, asked any) bool {
	switch asked := asked.(type) {
	case []string:
		all, _ := has.([]string)
		return !slices.ContainsFunc(asked, func(item string) bool { return !slices.Contains(all, item) })
	case int64, time.Duration:
		return has == asked || reflect.ValueOf(asked).IsZero()
	}
	return has == asked
}
