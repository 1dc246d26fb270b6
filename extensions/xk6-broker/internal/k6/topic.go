package k6

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// newTopic is a topic that a script creates.
type newTopic struct {
	driver.TopicSpec

	asked driver.Values  // the options that the script gives; of others any value will do
	uses  map[string]any // the options in the result
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
	given := maps.Clone(o.given)
	var t newTopic
	t.Name, t.Partitions, t.Replicas = topic, o.integer("partitions", 1, 1, 1<<20), o.integer("replicas", 1, 1, 1<<10)
	if t.Options, t.uses, err = c.resolve(driver.OnTopic, o); err != nil {
		return nil, err
	}
	t.asked = withParts(driver.TopicInfo{Partitions: t.Partitions, Replicas: t.Replicas, Options: t.Options})
	maps.DeleteFunc(t.asked, func(name string, _ any) bool { return given[name] == nil })
	return c.admin("create topic "+topic, commonCall.once, func(ctx context.Context, a driver.Admin) error {
		if err := a.CreateTopic(ctx, t.TopicSpec); err != nil {
			return err
		}
		if describer, ok := a.(driver.TopicDescriber); ok {
			if err := c.compare(ctx, describer, &t); err != nil {
				return err
			}
		}
		made := c.in.run.Topic(c.address, topic)
		made.Use("topic", t.uses)
		made.Created(t.TopicSpec)
		return nil
	}), nil
}

// withParts returns the options of a topic with its partitions and replicas, as far as known.
func withParts(info driver.TopicInfo) driver.Values {
	all := driver.Values{}
	maps.Copy(all, info.Options)
	if info.Partitions > 0 {
		all["partitions"] = info.Partitions
	}
	if info.Replicas > 0 {
		all["replicas"] = info.Replicas
	}
	return all
}

// compare reads the topic from the broker, where it can be older than the test. It notes the values
// for the result, and fails if one is not as asked for.
func (c *connection) compare(ctx context.Context, describer driver.TopicDescriber, t *newTopic) error {
	info, err := describer.DescribeTopic(ctx, t.Name)
	if err != nil { // the topic is there all the same
		c.in.run.logger.WithError(err).Warnf("createTopic: the options of %s cannot be read", t.Name)
	}
	has := withParts(info)
	if err := t.differs(has); err != nil {
		return err
	}
	maps.DeleteFunc(t.uses, func(name string, _ any) bool { return t.Options[name] != nil && has[name] == nil })
	for name, value := range c.address.Driver.Redact(has) {
		if reflect.TypeOf(value).Comparable() { // a list can have many more entries than asked for
			t.uses[name] = value
		}
	}
	return nil
}

// differs returns an error for each option of the topic that is not as asked for. Lists and maps
// are not compared, nor is a 0 or an empty text, which leaves the choice to the broker.
func (t *newTopic) differs(has driver.Values) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(t.asked)) {
		value, want := has[name], t.asked[name]
		if value == nil || !reflect.TypeOf(want).Comparable() || value == want {
			continue
		}
		if want != false && reflect.ValueOf(want).IsZero() {
			continue
		}
		err := fmt.Errorf("%s exists with %v, asked for %v", t.Name, value, want)
		errs = append(errs, &driver.OptionError{Name: name, Err: err})
	}
	return errors.Join(errs...)
}
