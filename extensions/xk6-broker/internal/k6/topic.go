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

	given map[string]any // by the script; of other options any value will do
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
	t := newTopic{given: maps.Clone(o.given)}
	t.Name, t.Partitions, t.Replicas = topic, o.integer("partitions", 1, 1, 1<<20), o.integer("replicas", 1, 1, 1<<10)
	if t.Options, t.uses, err = c.resolve(driver.OnTopic, o); err != nil {
		return nil, err
	}
	return c.admin("create topic "+topic, commonCall.once, func(ctx context.Context, a driver.Admin) error {
		if err := a.CreateTopic(ctx, t.TopicSpec); err != nil {
			return err
		}
		if err := c.compare(ctx, a, &t); err != nil {
			return err
		}
		made := c.in.run.Topic(c.address, topic)
		made.Use("topic", t.uses)
		made.Created(t.TopicSpec)
		return nil
	}), nil
}

// compare reads the topic from the broker, where it can be older than the test. It notes the values
// for the result, and fails if one is not as asked for. Without a [driver.TopicDescriber] it does
// nothing.
func (c *connection) compare(ctx context.Context, a driver.Admin, t *newTopic) error {
	describer, ok := a.(driver.TopicDescriber)
	if !ok {
		return nil
	}
	has, err := describer.DescribeTopic(ctx, t.Name)
	if err != nil { // the topic is there all the same
		c.in.run.logger.WithError(err).Warnf("createTopic: the options of %s cannot be read", t.Name)
	} else if err := t.differs(has); err != nil {
		return err
	}
	shown := c.address.Driver.Redact(has.Options)
	if has.Replicas > 0 {
		shown["replicas"] = has.Replicas
	}
	if has.Partitions > 0 {
		shown["partitions"] = has.Partitions
	}
	for name := range t.Options {
		if _, ok := shown[name]; !ok {
			delete(t.uses, name)
		}
	}
	for name, value := range shown {
		switch value.(type) {
		case []string, map[string]any: // the broker can have many more entries than asked for
		default:
			t.uses[name] = value
		}
	}
	return nil
}

// differs returns an error for each option of the topic that is not as asked for. Lists and maps
// are not compared, nor is a 0 or an empty text, which leaves the choice to the broker.
func (t *newTopic) differs(has driver.TopicInfo) error {
	values := driver.Values{"replicas": has.Replicas}
	asked := driver.Values{"partitions": t.Partitions, "replicas": t.Replicas}
	if has.Partitions > 0 {
		values["partitions"] = has.Partitions
	}
	maps.Copy(values, has.Options)
	maps.Copy(asked, t.Options)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(t.given)) {
		value, ok := values[name]
		want := asked[name]
		if !ok || !reflect.TypeOf(want).Comparable() || value == want {
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
