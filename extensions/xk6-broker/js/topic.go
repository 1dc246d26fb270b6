package js

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// newTopic is a topic that a script creates.
type newTopic struct {
	driver.TopicSpec

	uses                           map[string]any // what a result says of its options
	partitionsAsked, replicasAsked bool           // by the script: else any number will do
}

func (c *connection) createTopic(topic string, opts sobek.Value) (*sobek.Promise, error) {
	o, err := readOptions("createTopic", opts)
	if err != nil {
		return nil, err
	}
	var t newTopic
	_, t.partitionsAsked = o.given["partitions"]
	_, t.replicasAsked = o.given["replicas"]
	t.Name, t.Partitions, t.Replicas = topic, o.integer("partitions", 1, 1, 1<<20), o.integer("replicas", 1, 1, 1<<10)
	given, err := o.rest()
	if err = errors.Join(err, checkTopic("createTopic", topic)); err != nil {
		return nil, err
	}
	if t.Options, t.uses, err = c.resolve(driver.OnTopic, given); err != nil {
		return nil, o.explain(err)
	}
	return c.admin("create topic "+topic, func(ctx context.Context, a driver.Admin) error {
		if err := a.CreateTopic(ctx, t.TopicSpec); err != nil {
			return err //nolint:wrapcheck // its caller wraps it
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

// describe notes what the broker has of a topic: it may have been there before. A broker that does not say has no partitions.
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
	t.uses["partitions"], t.uses["replicas"] = has.Partitions, has.Replicas
	if differs := t.differs(has); differs != "" {
		t.uses["exists"] = differs
		c.in.run.logger.Warnf("createTopic: %s exists %s", t.Name, differs)
	}
	return nil
}

// differs says where a topic is not as the script asked; "" where it is.
func (t *newTopic) differs(has driver.TopicInfo) string {
	var all []string
	note := func(what string, asked bool, wanted, has int) {
		if has != 1 {
			what += "s"
		}
		if asked && wanted != has {
			all = append(all, fmt.Sprintf("with %d %s, asked for %d", has, what, wanted))
		}
	}
	note("partition", t.partitionsAsked, t.Partitions, has.Partitions)
	note("replica", t.replicasAsked, t.Replicas, has.Replicas)
	return strings.Join(all, "; ")
}
