package kurrentdb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/persistent"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// settings are those of a persistent subscription that consumers' options are for.
func settings(v driver.Values) *persistent.CreateReq_Settings {
	ms := func(name string) int32 { return int32(v.Duration(name) / time.Millisecond) } //gosec:disable G115 -- the option has limits
	count := func(name string) int32 { return int32(v.Int(name)) }                      //gosec:disable G115 -- the option has limits
	return &persistent.CreateReq_Settings{
		ResolveLinks: v.Bool("resolveLinks"), MaxRetryCount: count("maxRetryCount"), MaxSubscriberCount: count("maxSubscribers"),
		MinCheckpointCount: count("minCheckpoint"), MaxCheckpointCount: count("maxCheckpoint"),
		LiveBufferSize: count("liveBuffer"), ReadBatchSize: count("readBatchSize"), HistoryBufferSize: count("historyBuffer"),
		ConsumerStrategy: v.String("strategy"),
		MessageTimeout:   &persistent.CreateReq_Settings_MessageTimeoutMs{MessageTimeoutMs: ms("messageTimeout")},
		CheckpointAfter:  &persistent.CreateReq_Settings_CheckpointAfterMs{CheckpointAfterMs: ms("checkpointAfter")},
	}
}

// settingsOf are the settings that a group has.
func settingsOf(g *persistent.SubscriptionInfo) *persistent.CreateReq_Settings {
	return &persistent.CreateReq_Settings{
		ResolveLinks: g.GetResolveLinkTos(), ExtraStatistics: g.GetExtraStatistics(),
		MaxRetryCount: g.GetMaxRetryCount(), MaxSubscriberCount: g.GetMaxSubscriberCount(),
		MinCheckpointCount: g.GetMinCheckPointCount(), MaxCheckpointCount: g.GetMaxCheckPointCount(),
		LiveBufferSize: g.GetLiveBufferSize(), ReadBatchSize: g.GetReadBatchSize(), HistoryBufferSize: g.GetBufferSize(),
		ConsumerStrategy: g.GetNamedConsumerStrategy(),
		MessageTimeout:   &persistent.CreateReq_Settings_MessageTimeoutMs{MessageTimeoutMs: g.GetMessageTimeoutMilliseconds()},
		CheckpointAfter:  &persistent.CreateReq_Settings_CheckpointAfterMs{CheckpointAfterMs: g.GetCheckPointAfterMilliseconds()},
	}
}

// differ is an error where a group that was there before is not as it is asked for: a test of it would measure something else than its script says.
func differ(group string, has, asked *persistent.CreateReq_Settings) error {
	var errs []error
	for _, s := range []struct {
		option     string
		has, asked any
	}{
		{"strategy", has.GetConsumerStrategy(), asked.GetConsumerStrategy()},
		{"messageTimeout", millis(has.GetMessageTimeoutMs()), millis(asked.GetMessageTimeoutMs())},
		{"maxRetryCount", has.GetMaxRetryCount(), asked.GetMaxRetryCount()},
		{"readBatchSize", has.GetReadBatchSize(), asked.GetReadBatchSize()},
		{"historyBuffer", has.GetHistoryBufferSize(), asked.GetHistoryBufferSize()},
		{"liveBuffer", has.GetLiveBufferSize(), asked.GetLiveBufferSize()},
		{"checkpointAfter", millis(has.GetCheckpointAfterMs()), millis(asked.GetCheckpointAfterMs())},
		{"minCheckpoint", has.GetMinCheckpointCount(), asked.GetMinCheckpointCount()},
		{"maxCheckpoint", has.GetMaxCheckpointCount(), asked.GetMaxCheckpointCount()},
		{"maxSubscribers", has.GetMaxSubscriberCount(), asked.GetMaxSubscriberCount()},
		{"resolveLinks", has.GetResolveLinks(), asked.GetResolveLinks()},
	} {
		if s.has != s.asked {
			errs = append(errs, &driver.OptionError{Name: s.option, Err: fmt.Errorf("group %s exists with %v, asked for %v", group, s.has, s.asked)})
		}
	}
	return errors.Join(errs...)
}

func millis(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }

// from is where a new group begins.
type from func(*persistent.CreateReq_StreamOptions)

func after(revision uint64) from {
	return func(o *persistent.CreateReq_StreamOptions) {
		o.RevisionOption = &persistent.CreateReq_StreamOptions_Revision{Revision: revision + 1}
	}
}

func starting(start driver.Start) from {
	return func(o *persistent.CreateReq_StreamOptions) {
		if start == driver.StartEarliest {
			o.RevisionOption = &persistent.CreateReq_StreamOptions_Start{Start: &shared.Empty{}}
		} else {
			o.RevisionOption = &persistent.CreateReq_StreamOptions_End{End: &shared.Empty{}}
		}
	}
}

func (c *conn) createGroup(ctx context.Context, stream, group string, s *persistent.CreateReq_Settings, begin from) error {
	return c.call(ctx, func(ctx context.Context, n *node, o ...grpc.CallOption) error {
		at := &persistent.CreateReq_StreamOptions{StreamIdentifier: identifier(stream)}
		begin(at)
		_, err := n.groups.Create(ctx, &persistent.CreateReq{Options: &persistent.CreateReq_Options{
			StreamOption: &persistent.CreateReq_Options_Stream{Stream: at}, GroupName: group, Settings: s,
		}}, o...)
		return err
	})
}

// join makes a group where there is none, and else asks what it is like, if the server tells.
func (c *conn) join(ctx context.Context, cfg driver.ConsumerConfig) error {
	asked := settings(cfg.Options)
	err := c.createGroup(ctx, cfg.Topic, cfg.Group, asked, starting(cfg.Start))
	if !says(err, codes.AlreadyExists, "") {
		return err
	}
	has, err := c.group(ctx, cfg.Topic, cfg.Group)
	if err != nil {
		if classify(err) == driver.Denied {
			return nil
		}
		return err
	}
	return differ(cfg.Group, settingsOf(has), asked)
}

func (c *conn) deleteGroup(ctx context.Context, stream, group string) error {
	return c.call(ctx, func(ctx context.Context, n *node, o ...grpc.CallOption) error {
		_, err := n.groups.Delete(ctx, &persistent.DeleteReq{Options: &persistent.DeleteReq_Options{
			StreamOption: &persistent.DeleteReq_Options_StreamIdentifier{StreamIdentifier: identifier(stream)}, GroupName: group,
		}}, o...)
		return err
	})
}

// groups are those of a stream.
func (c *conn) groups(ctx context.Context, stream string) (all []*persistent.SubscriptionInfo, err error) {
	err = c.call(ctx, func(ctx context.Context, n *node, o ...grpc.CallOption) error {
		answer, err := n.groups.List(ctx, &persistent.ListReq{Options: &persistent.ListReq_Options{
			ListOption: &persistent.ListReq_Options_ListForStream{ListForStream: &persistent.ListReq_StreamOption{
				StreamOption: &persistent.ListReq_StreamOption_Stream{Stream: identifier(stream)},
			}},
		}}, o...)
		all = answer.GetSubscriptions()
		return err
	})
	if says(err, codes.NotFound, "") && !says(err, codes.OK, notLeader) {
		return nil, nil // there are none
	}
	return all, err
}

// group is what the server tells of a group.
func (c *conn) group(ctx context.Context, stream, group string) (info *persistent.SubscriptionInfo, err error) {
	err = c.call(ctx, func(ctx context.Context, n *node, o ...grpc.CallOption) error {
		answer, err := n.groups.GetInfo(ctx, &persistent.GetInfoReq{Options: &persistent.GetInfoReq_Options{
			StreamOption: &persistent.GetInfoReq_Options_StreamIdentifier{StreamIdentifier: identifier(stream)}, GroupName: group,
		}}, o...)
		info = answer.GetSubscriptionInfo()
		return err
	})
	return info, err
}

// Backlog asks how many messages a group has with its consumers, to be delivered again, and in memory for the first time. That is all that there is while the group
// is live. One that is behind reads from the disk: then it is what the stream has behind the group's checkpoint, which is written only now and then.
func (c *conn) Backlog(ctx context.Context, topic, group string) (b driver.Backlog, err error) {
	if group == "" {
		return b, fmt.Errorf("backlog without a group: %w", errors.ErrUnsupported)
	}
	info, err := c.group(ctx, topic, group)
	if err != nil {
		return b, err
	}
	waiting := int64(info.GetReadBufferCount())
	known := waiting + int64(info.GetRetryBufferCount()) + int64(info.GetOutstandingMessagesCount())
	if strings.Contains(info.GetStatus(), "Live") {
		return driver.Backlog{Messages: known, Undelivered: waiting}, nil
	}
	last, err := c.last(ctx, topic)
	if err != nil {
		return b, err
	}
	if first, told := begun(info); told && last != nil {
		known = max(known, int64(last.GetStreamRevision())+1-first) //gosec:disable G115 -- a count, far below the limit
	}
	return driver.Backlog{Messages: known}, nil
}

// begun is the revision of the first message that a group may not be done with; of one without a checkpoint that began at the end the server does not tell.
func begun(info *persistent.SubscriptionInfo) (first int64, told bool) {
	if done, err := strconv.ParseInt(info.GetLastCheckpointedEventPosition(), 10, 64); err == nil {
		return done + 1, true
	}
	start, err := strconv.ParseInt(info.GetStartFrom(), 10, 64)
	return start, err == nil && start >= 0
}
