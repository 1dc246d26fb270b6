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

	uses  map[string]any // the options in the result
	asked []string       // the options that the script or the URL gives; of others any value will do
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
	t.asked = append(t.asked, slices.Sorted(maps.Keys(c.address.Asked(driver.OnTopic, given)))...)
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
	} else if err := t.differs(c.address.Driver, has); err != nil {
		return err
	}
	shown := c.address.Driver.Redact(has.Options)
	for name := range t.Options {
		value, known := shown[name]
		switch value.(type) {
		case []string, map[string]any: // the broker can have many more entries than asked for
		default:
			t.uses[name] = value
		}
		if !known {
			delete(t.uses, name)
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

// differs returns an error for each option of the topic that is not as asked for. Lists and maps
// are not compared, nor is an option whose zero value leaves the choice to the broker.
func (t *newTopic) differs(of *driver.Driver, has driver.TopicInfo) error {
	all, wanted := driver.Values{
		"replicas": has.Replicas,
	}, driver.Values{
		"partitions": t.Partitions,
		"replicas":   t.Replicas,
	}
	maps.Copy(all, has.Options)
	maps.Copy(wanted, t.Options)
	if has.Partitions > 0 {
		all["partitions"] = has.Partitions
	}
	var errs []error
	for _, name := range t.asked {
		value, known := all[name]
		option, _ := of.Option(name)
		if !known || !reflect.TypeOf(wanted[name]).Comparable() {
			continue
		}
		asked := wanted[name]
		if option.ZeroIsDefault && reflect.ValueOf(asked).IsZero() {
			continue
		}
		if value != asked {
			errs = append(
				errs,
				&driver.OptionError{Name: name, Err: fmt.Errorf("%s exists with %v, asked for %v", t.Name, value, asked)},
			)
		}
	}
	return errors.Join(errs...)
}
