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

// settings returns the settings of a new group: the options, and the product's defaults.
//
//gosec:disable G115 -- the options have limits
func settings(v driver.Values) *persistent.CreateReq_Settings {
	timeout := int32(v.Duration("messageTimeout") / time.Millisecond)
	return &persistent.CreateReq_Settings{
		MaxRetryCount:      int32(v.Int("maxRetryCount")),
		ConsumerStrategy:   v.String("strategy"),
		MessageTimeout:     &persistent.CreateReq_Settings_MessageTimeoutMs{MessageTimeoutMs: timeout},
		LiveBufferSize:     500,
		HistoryBufferSize:  500,
		ReadBatchSize:      20,
		MinCheckpointCount: 10,
		MaxCheckpointCount: 1000,
		CheckpointAfter:    &persistent.CreateReq_Settings_CheckpointAfterMs{CheckpointAfterMs: 2000},
	}
}

// settingsOf returns the settings of an existing group.
func settingsOf(g *persistent.SubscriptionInfo) *persistent.CreateReq_Settings {
	return &persistent.CreateReq_Settings{
		ResolveLinks: g.GetResolveLinkTos(), ExtraStatistics: g.GetExtraStatistics(),
		MaxRetryCount: g.GetMaxRetryCount(), MaxSubscriberCount: g.GetMaxSubscriberCount(),
		MinCheckpointCount: g.GetMinCheckPointCount(), MaxCheckpointCount: g.GetMaxCheckPointCount(),
		LiveBufferSize: g.GetLiveBufferSize(), ReadBatchSize: g.GetReadBatchSize(),
		HistoryBufferSize: g.GetBufferSize(),
		ConsumerStrategy:  g.GetNamedConsumerStrategy(),
		MessageTimeout: &persistent.CreateReq_Settings_MessageTimeoutMs{
			MessageTimeoutMs: g.GetMessageTimeoutMilliseconds(),
		},
		CheckpointAfter: &persistent.CreateReq_Settings_CheckpointAfterMs{
			CheckpointAfterMs: g.GetCheckPointAfterMilliseconds(),
		},
	}
}

// from sets the beginning of a new group.
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

func (c *conn) createGroup(
	ctx context.Context, stream, group string, s *persistent.CreateReq_Settings, begin from,
) error {
	return c.call(ctx, func(ctx context.Context, o grpc.CallOption) error {
		at := &persistent.CreateReq_StreamOptions{StreamIdentifier: identifier(stream)}
		begin(at)
		_, err := c.shares.Create(ctx, &persistent.CreateReq{Options: &persistent.CreateReq_Options{
			StreamOption: &persistent.CreateReq_Options_Stream{Stream: at}, GroupName: group, Settings: s,
		}}, o)
		return err
	})
}

// join creates a group. It fails if the group exists with other options, if the user may read them.
func (c *conn) join(ctx context.Context, cfg driver.ConsumerConfig) error {
	asked := settings(cfg.Options)
	err := c.createGroup(ctx, cfg.Topic, cfg.Group, asked, starting(cfg.Start))
	if !hasCode(err, codes.AlreadyExists) {
		return err
	}
	existing, err := c.group(ctx, cfg.Topic, cfg.Group)
	if err != nil {
		if classify(err) == driver.Denied {
			return nil
		}
		return err
	}
	has := settingsOf(existing)
	if has.GetMaxRetryCount() != asked.GetMaxRetryCount() || has.GetConsumerStrategy() != asked.GetConsumerStrategy() ||
		has.GetMessageTimeoutMs() != asked.GetMessageTimeoutMs() {
		return &driver.OptionError{
			Name: "group",
			Err:  fmt.Errorf("%s exists with %v, asked for %v", cfg.Group, has, asked),
		}
	}
	return nil
}

func (c *conn) deleteGroup(ctx context.Context, stream, group string) error {
	return c.call(ctx, func(ctx context.Context, o grpc.CallOption) error {
		topic := &persistent.DeleteReq_Options_StreamIdentifier{StreamIdentifier: identifier(stream)}
		request := &persistent.DeleteReq{Options: &persistent.DeleteReq_Options{StreamOption: topic, GroupName: group}}
		_, err := c.shares.Delete(ctx, request, o)
		return err
	})
}

// groups lists the groups of a stream.
func (c *conn) groups(ctx context.Context, stream string) (all []*persistent.SubscriptionInfo, err error) {
	err = c.call(ctx, func(ctx context.Context, o grpc.CallOption) error {
		answer, err := c.shares.List(ctx, &persistent.ListReq{Options: &persistent.ListReq_Options{
			ListOption: &persistent.ListReq_Options_ListForStream{ListForStream: &persistent.ListReq_StreamOption{
				StreamOption: &persistent.ListReq_StreamOption_Stream{Stream: identifier(stream)},
			}},
		}}, o)
		all = answer.GetSubscriptions()
		return err
	})
	if hasCode(err, codes.NotFound) {
		return nil, nil // there are none
	}
	return all, err
}

// group returns the server's description of a group.
func (c *conn) group(ctx context.Context, stream, group string) (info *persistent.SubscriptionInfo, err error) {
	err = c.call(ctx, func(ctx context.Context, o grpc.CallOption) error {
		topic := &persistent.GetInfoReq_Options_StreamIdentifier{StreamIdentifier: identifier(stream)}
		request := &persistent.GetInfoReq{
			Options: &persistent.GetInfoReq_Options{StreamOption: topic, GroupName: group},
		}
		answer, err := c.shares.GetInfo(ctx, request, o)
		info = answer.GetSubscriptionInfo()
		return err
	})
	return info, err
}

// Backlog returns the messages of a group at its consumers, to be redelivered, and in memory. While
// the group is live these are all. Else it reads from disk, and the backlog is the distance from
// its checkpoint.
func (c *conn) Backlog(ctx context.Context, topic, group string) (b driver.Backlog, err error) {
	if group == "" {
		return b, fmt.Errorf("backlog without a group: %w", errors.ErrUnsupported)
	}
	info, err := c.group(ctx, topic, group)
	if err != nil {
		return b, err
	}
	waiting := int64(info.GetReadBufferCount())
	held := waiting + int64(info.GetRetryBufferCount()) + int64(info.GetOutstandingMessagesCount())
	if strings.Contains(info.GetStatus(), "Live") {
		return driver.Backlog{Messages: held, Undelivered: waiting, Estimate: true}, nil
	}
	last, err := c.last(ctx, topic)
	if err != nil {
		return b, err
	}
	if first, ok := firstOpen(info); ok && last != nil {
		held = max(held, int64(last.GetStreamRevision())+1-first) //gosec:disable G115 -- a count, far below the limit
	}
	return driver.Backlog{Messages: held, Estimate: true}, nil
}

// firstOpen returns the revision of the first message that may be unsettled. It is not known of a
// group that began at the end and has no checkpoint.
func firstOpen(info *persistent.SubscriptionInfo) (first int64, ok bool) {
	if done, err := strconv.ParseInt(info.GetLastCheckpointedEventPosition(), 10, 64); err == nil {
		return done + 1, true
	}
	start, err := strconv.ParseInt(info.GetStartFrom(), 10, 64)
	return start, err == nil && start >= 0
}
