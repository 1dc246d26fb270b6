package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// CreateTopic returns when every broker has the topic and every partition has a leader that
// answers, so that the next message does not fail.
func (c *conn) CreateTopic(ctx context.Context, s driver.TopicSpec) error {
	partitions, replicas := int32(s.Partitions), int16(s.Replicas) //gosec:disable G115 -- the broker refuses too many
	created, err := c.admin.CreateTopic(ctx, partitions, replicas, topicConfigs(s), s.Name)
	if err == nil {
		err = created.Err
	}
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		if created.ErrMessage != "" {
			err = fmt.Errorf("%w: %s", err, created.ErrMessage)
		}
		return fmt.Errorf("topic %s: %w", s.Name, err)
	}
	if err := c.everywhere(ctx, s.Name, led); err != nil {
		return err
	}
	// A broker reports itself as a leader a moment before it is.
	return c.retry(ctx, func() error {
		_, err := c.offsets(ctx, s.Name, driver.StartNew)
		return err
	})
}

// led reports whether every partition of a topic has a leader.
func led(t kmsg.MetadataResponseTopic) bool {
	if t.ErrorCode != 0 || len(t.Partitions) == 0 {
		return false
	}
	for _, p := range t.Partitions {
		if p.ErrorCode != 0 || p.Leader < 0 {
			return false
		}
	}
	return true
}

func topicConfigs(s driver.TopicSpec) map[string]*string {
	configs := map[string]*string{}
	set := func(name, value string) { configs[name] = &value }
	if d := s.Options.Duration("retention"); d > 0 {
		set("retention.ms", strconv.FormatInt(d.Milliseconds(), 10))
	}
	if n := s.Options.Int("minInsyncReplicas"); n > 0 {
		set("min.insync.replicas", strconv.FormatInt(min(n, int64(s.Replicas)), 10))
	}
	for name, value := range s.Options.Map("configs") {
		set(name, driver.Text(value))
	}
	return configs
}

// DescribeTopic asks a broker, because a new topic is not in the client's cache.
func (c *conn) DescribeTopic(ctx context.Context, topic string) (info driver.TopicInfo, err error) {
	described, err := c.metadata(ctx, topic)
	if err != nil {
		return info, err
	}
	for _, p := range described.Partitions {
		info = driver.TopicInfo{Partitions: len(described.Partitions), Replicas: len(p.Replicas)}
	}
	configs, err := c.configs(ctx, topic)
	if err != nil {
		return info, nil //nolint:nilerr // a user may see topics without their configs
	}
	info.Options = driver.Values{"configs": listed(configs)}
	if ms, err := strconv.ParseInt(configs["retention.ms"], 10, 64); err == nil {
		info.Options["retention"] = time.Duration(ms) * time.Millisecond
	}
	// The option is limited to the replicas, so all of them is the same as any greater number.
	least, err := strconv.ParseInt(configs["min.insync.replicas"], 10, 64)
	if err == nil && least < int64(info.Replicas) {
		info.Options["minInsyncReplicas"] = least
	}
	return info, nil
}

// listed converts configs to the option of that name.
func listed(configs map[string]string) map[string]any {
	all := make(map[string]any, len(configs))
	for name, value := range configs {
		all[name] = value
	}
	return all
}

// configs returns a topic's configs, including the broker's defaults.
func (c *conn) configs(ctx context.Context, topic string) (map[string]string, error) {
	described, err := c.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	answer, err := described.On(topic, nil)
	if err == nil {
		err = answer.Err
	}
	if err != nil {
		return nil, err
	}
	configs := map[string]string{}
	for _, c := range answer.Configs {
		configs[c.Key] = c.MaybeValue()
	}
	return configs, nil
}

// DeleteTopic returns when no broker has the topic. The broker drops the offsets of groups; groups
// belong to no topic.
func (c *conn) DeleteTopic(ctx context.Context, topic string) error {
	deleted, err := c.admin.DeleteTopic(ctx, topic)
	if err == nil {
		err = deleted.Err
	}
	if err != nil {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	return c.everywhere(ctx, topic, func(t kmsg.MetadataResponseTopic) bool {
		return t.ErrorCode == kerr.UnknownTopicOrPartition.Code
	})
}

// PurgeTopic deletes all records up to the present ends of the partitions.
func (c *conn) PurgeTopic(ctx context.Context, topic string) error {
	ends, err := c.offsets(ctx, topic, driver.StartNew)
	if err != nil {
		return err
	}
	deleted, err := c.admin.DeleteRecords(ctx, ends)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	return nil
}

// everywhere waits until ready holds for every broker's description of a topic. Brokers apply
// changes one by one.
func (c *conn) everywhere(ctx context.Context, topic string, ready func(kmsg.MetadataResponseTopic) bool) error {
	brokers, err := c.admin.ListBrokers(ctx)
	if err != nil {
		return err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, broker := range brokers {
		for {
			response, err := c.client.Broker(int(broker.NodeID)).RetriableRequest(ctx, metadataRequest(topic))
			if err != nil {
				return err
			}
			answer, ok := response.(*kmsg.MetadataResponse)
			if ok && len(answer.Topics) == 1 && ready(answer.Topics[0]) {
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return fmt.Errorf("waiting for topic %s at broker %d: %w", topic, broker.NodeID, ctx.Err())
			}
		}
	}
	return nil
}

// metadata returns a broker's present description of a topic.
func (c *conn) metadata(ctx context.Context, topic string) (none kmsg.MetadataResponseTopic, err error) {
	answer, err := metadataRequest(topic).RequestWith(ctx, c.client)
	switch {
	case err != nil:
		return none, err
	case len(answer.Topics) != 1:
		return none, errors.New("the broker's answer lacks the topic " + topic)
	}
	if err := kerr.ErrorForCode(answer.Topics[0].ErrorCode); err != nil {
		return none, fmt.Errorf("topic %s: %w", topic, err)
	}
	return answer.Topics[0], nil
}

func metadataRequest(topic string) *kmsg.MetadataRequest {
	request := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = kmsg.StringPtr(topic)
	request.Topics = append(request.Topics, asked)
	return request
}
