package kurrentdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/streams"
	"google.golang.org/grpc"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// The server's names in a stream's metadata, and this driver's mark of a topic without events.
const (
	keyTruncate = "$tb" // the first visible revision
	keyMaxCount = "$maxCount"
	keyMaxAge   = "$maxAge" // seconds
	keyCreated  = "xk6-broker"
)

// deleted is the value of keyTruncate after a deletion, until the next event.
const deleted = math.MaxInt64

// streamMetadata has the metadata of a stream, and the expectation with which they can be replaced.
type streamMetadata struct {
	values map[string]json.RawMessage
	expect func(*streams.AppendReq_Options)
}

func (m *streamMetadata) number(name string) (n int64, ok bool) {
	return n, json.Unmarshal(m.values[name], &n) == nil
}

func (m *streamMetadata) set(name string, value int64) { m.values[name] = fmt.Append(nil, value) }

// topic returns the metadata of a stream, also with errNoTopic if the topic does not exist.
func (c *conn) topic(ctx context.Context, name string) (*streamMetadata, error) {
	m := &streamMetadata{values: map[string]json.RawMessage{}}
	event, err := c.last(ctx, "$$"+name)
	if err != nil {
		return nil, err
	}
	if event == nil {
		m.expect = func(o *streams.AppendReq_Options) {
			o.ExpectedStreamRevision = &streams.AppendReq_Options_NoStream{NoStream: &shared.Empty{}}
		}
		if event, err = c.last(ctx, name); err == nil && event == nil {
			err = fmt.Errorf("%q: %w", name, errNoTopic)
		}
		return m, err
	}
	m.expect = func(o *streams.AppendReq_Options) {
		o.ExpectedStreamRevision = &streams.AppendReq_Options_Revision{Revision: event.GetStreamRevision()}
	}
	if err := json.Unmarshal(event.GetData(), &m.values); err != nil {
		return nil, fmt.Errorf("the metadata of %q: %w", name, err)
	}
	if before, ok := m.number(keyTruncate); ok && before == deleted && m.values[keyCreated] == nil {
		return m, fmt.Errorf("%q: %w", name, errNoTopic)
	}
	return m, nil
}

// last returns the last event of a stream; nil if it has none.
func (c *conn) last(ctx context.Context, stream string) (event *streams.ReadResp_ReadEvent_RecordedEvent, err error) {
	err = c.call(ctx, func(ctx context.Context, o grpc.CallOption) error {
		request := reading(stream)
		request.Options.ReadDirection = streams.ReadReq_Options_Backwards
		request.Options.CountOption = &streams.ReadReq_Options_Count{Count: 1}
		request.Options.GetStream().RevisionOption = &streams.ReadReq_Options_StreamOptions_End{End: &shared.Empty{}}
		call, err := c.events.Read(ctx, request, o)
		if err != nil {
			return err
		}
		for {
			part, err := call.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if e := part.GetEvent(); e != nil {
				event = e.GetEvent()
			}
		}
	})
	return event, err
}

// reading returns the common part of all requests to read.
func reading(stream string) *streams.ReadReq {
	from := &streams.ReadReq_Options_StreamOptions{StreamIdentifier: identifier(stream)}
	uuid := &streams.ReadReq_Options_UUIDOption_Structured{Structured: &shared.Empty{}}
	return &streams.ReadReq{Options: &streams.ReadReq_Options{
		StreamOption: &streams.ReadReq_Options_Stream{Stream: from},
		FilterOption: &streams.ReadReq_Options_NoFilter{NoFilter: &shared.Empty{}},
		UuidOption:   &streams.ReadReq_Options_UUIDOption{Content: uuid},
	}}
}

// write replaces the metadata of a stream.
func (c *conn) write(ctx context.Context, name string, m *streamMetadata) error {
	data, err := json.Marshal(m.values)
	if err != nil {
		return err
	}
	_, err = c.append(ctx, "$$"+name, m.expect, &streams.AppendReq_ProposedMessage{
		Id: newID(), Metadata: kinds("$metadata", "application/json"), Data: data,
	})
	return err
}

// CreateTopic writes metadata. The old events of a deleted stream stay deleted.
func (c *conn) CreateTopic(ctx context.Context, s driver.TopicSpec) error {
	return c.change(ctx, s.Name, func(m *streamMetadata, exists bool) bool {
		if exists {
			return false
		}
		m.values[keyCreated] = json.RawMessage(`"created"`)
		if most := s.Options.Int("maxCount"); most > 0 {
			m.set(keyMaxCount, most)
		}
		if age := s.Options.Duration("maxAge"); age > 0 {
			m.set(keyMaxAge, int64(age/time.Second))
		}
		return true
	})
}

// change writes metadata if edit returns true, and repeats that if others changed them at the same
// time.
func (c *conn) change(ctx context.Context, name string, edit func(m *streamMetadata, exists bool) bool) error {
	for {
		m, err := c.topic(ctx, name)
		if err != nil && !errors.Is(err, errNoTopic) {
			return err
		}
		if !edit(m, err == nil) {
			return nil
		}
		if err := c.write(ctx, name, m); !errors.Is(err, errChanged) {
			return err
		}
	}
}

// DescribeTopic returns the options in the metadata.
func (c *conn) DescribeTopic(ctx context.Context, name string) (info driver.TopicInfo, err error) {
	m, err := c.topic(ctx, name)
	if err != nil {
		return info, err
	}
	most, _ := m.number(keyMaxCount)
	age, _ := m.number(keyMaxAge)
	info.Replicas = max(1, c.info.Nodes)
	info.Options = driver.Values{"maxCount": most, "maxAge": time.Duration(age) * time.Second}
	return info, nil
}

// DeleteTopic deletes the stream and its groups, with their parked messages. The stream can be
// written again, and its numbers go on then.
func (c *conn) DeleteTopic(ctx context.Context, name string) error {
	if _, err := c.topic(ctx, name); err != nil {
		return err
	}
	groups, err := c.groups(ctx, name)
	for _, g := range groups {
		err = errors.Join(err, c.deleteGroup(ctx, name, g.GetGroupName()))
	}
	if err != nil {
		return err
	}
	return c.call(ctx, func(ctx context.Context, o grpc.CallOption) error {
		_, err := c.events.Delete(ctx, &streams.DeleteReq{Options: &streams.DeleteReq_Options{
			StreamIdentifier:       identifier(name),
			ExpectedStreamRevision: &streams.DeleteReq_Options_Any{Any: &shared.Empty{}},
		}}, o)
		return err
	})
}

// PurgeTopic truncates the stream behind its last event. Its groups hold events in memory, so they
// are created again, with the same settings, from there on.
func (c *conn) PurgeTopic(ctx context.Context, name string) error {
	event, err := c.last(ctx, name)
	if err != nil {
		return err
	}
	missing := false
	end := int64(event.GetStreamRevision()) + 1 //gosec:disable G115 -- a count, far below the limit
	err = c.change(ctx, name, func(m *streamMetadata, exists bool) bool {
		missing = !exists
		if before, _ := m.number(keyTruncate); missing || event == nil || before >= end {
			return false
		}
		m.set(keyTruncate, end)
		return true
	})
	if err == nil && missing {
		err = fmt.Errorf("%q: %w", name, errNoTopic)
	}
	if err != nil || event == nil {
		return err
	}
	groups, err := c.groups(ctx, name)
	for _, g := range groups {
		if gone := c.deleteGroup(ctx, name, g.GetGroupName()); gone != nil {
			err = errors.Join(err, gone)
			continue
		}
		again := c.createGroup(ctx, name, g.GetGroupName(), settingsOf(g), after(event.GetStreamRevision()))
		err = errors.Join(err, again)
	}
	return err
}
