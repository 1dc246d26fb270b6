package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-rocketmq/internal/remoting"
)

// CreateTopic creates a topic with partitions spread over all brokers. An existing one is not
// changed.
func (c *conn) CreateTopic(ctx context.Context, s driver.TopicSpec) error {
	if _, err := c.admin.parts(ctx, s.Name); !isNotFound(err) {
		return err
	}
	brokers, err := c.admin.brokers(ctx)
	if err != nil {
		return err
	}
	if len(brokers) == 0 {
		return errNoMaster
	}
	kind := strings.ToUpper(s.Options.String("messageType"))
	for i, b := range brokers {
		queues := s.Partitions / len(brokers)
		if i < s.Partitions%len(brokers) {
			queues++
		}
		if queues == 0 {
			continue
		}
		_, _, err := c.admin.broker.Call(ctx, b.master(), updateTopic, map[string]string{
			"topic": s.Name, "defaultTopic": "TBW102", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
			"readQueueNums": strconv.Itoa(
				queues,
			), "writeQueueNums": strconv.Itoa(queues), "perm": strconv.Itoa(permissionReadSend),
			"attributes": "+message.type=" + kind,
		}, nil)
		if err != nil {
			return fmt.Errorf("topic %s: %w", s.Name, err)
		}
	}
	_, err = c.await(ctx, s.Name)
	return err
}

// DescribeTopic asks the name server for the queues, and a broker for the type.
func (c *conn) DescribeTopic(ctx context.Context, topic string) (info driver.TopicInfo, err error) {
	parts, err := c.admin.parts(ctx, topic)
	if err != nil {
		return info, fmt.Errorf("topic %s: %w", topic, err)
	}
	info.Replicas = len(parts[0].Addresses)
	for _, p := range parts {
		info.Partitions += p.queues
		info.Replicas = min(info.Replicas, len(p.Addresses))
	}
	kind, err := c.admin.messageType(ctx, parts[0].set, topic)
	if err != nil {
		return info, fmt.Errorf("topic %s: %w", topic, err)
	}
	if name := strings.ToLower(kind); slices.Contains(messageTypes, name) {
		info.Options = driver.Values{"messageType": name}
	}
	return info, nil
}

// messageType returns the type of a topic; NORMAL by default.
func (a *admin) messageType(ctx context.Context, s set, topic string) (string, error) {
	var result struct {
		Attributes map[string]string `json:"attributes"`
	}
	_, body, err := a.broker.Call(ctx, s.master(), getTopic, map[string]string{"topic": topic}, nil)
	if err == nil {
		err = remoting.Unmarshal(body, &result)
	}
	if kind := result.Attributes["message.type"]; kind != "" {
		return kind, err
	}
	return "NORMAL", err
}

// DeleteTopic deletes a topic, and the groups that consume nothing else.
func (c *conn) DeleteTopic(ctx context.Context, topic string) error {
	parts, err := c.admin.parts(ctx, topic)
	if err != nil {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	for _, p := range parts {
		groups, err := c.admin.groupsOnlyOf(ctx, p.set, topic)
		if err != nil {
			return fmt.Errorf("topic %s: its groups: %w", topic, err)
		}
		if _, _, err := c.admin.broker.Call(ctx, p.master(), deleteTopic, map[string]string{"topic": topic}, nil); err != nil {
			return fmt.Errorf("topic %s: %w", topic, err)
		}
		for _, group := range groups {
			if err := c.admin.deleteGroup(ctx, p.set, group); err != nil {
				return fmt.Errorf("topic %s: %w", topic, err)
			}
		}
	}
	for _, address := range c.admin.nameServers {
		if _, _, err := c.admin.names.Call(ctx, address, forgetTopic, map[string]string{"topic": topic}, nil); err != nil &&
			!isNotFound(err) {
			return fmt.Errorf("topic %s: %w", topic, err)
		}
	}
	return nil
}

// groupsOnlyOf are the groups that have consumed a topic of a broker, and no other.
func (a *admin) groupsOnlyOf(ctx context.Context, s set, topic string) (only []string, err error) {
	groups, err := a.list(ctx, s, groupsOfTopic, "topic", topic, "groupList")
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		topics, err := a.list(ctx, s, topicsOfGroup, "group", group, "topicList")
		if err != nil && !isNotFound(err) {
			return nil, err
		}
		other := func(t string) bool { return t != topic && !strings.HasPrefix(t, retryPrefix) }
		if !slices.ContainsFunc(topics, other) {
			only = append(only, group)
		}
	}
	return only, nil
}

// list asks a broker for names.
func (a *admin) list(ctx context.Context, s set, code int, field, value, name string) ([]string, error) {
	_, body, err := a.broker.Call(ctx, s.master(), code, map[string]string{field: value}, nil)
	if err != nil {
		return nil, err
	}
	result := map[string]any{}
	if err := remoting.Unmarshal(body, &result); err != nil {
		return nil, err
	}
	var names []string
	all, _ := result[name].([]any)
	for _, one := range all {
		if s, ok := one.(string); ok {
			names = append(names, s)
		}
	}
	return names, nil
}

// PurgeTopic is not to be had: brokers drop messages when they are old.
func (c *conn) PurgeTopic(ctx context.Context, topic string) error {
	if _, err := c.admin.parts(ctx, topic); err != nil {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	return fmt.Errorf("RocketMQ keeps messages until they are old: %w", errors.ErrUnsupported)
}
