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

// The server's names for what a stream's metadata say, and one of this driver's own: a stream comes to be with its first event, and a topic before.
const (
	keyTruncate = "$tb" // events before that one are no more
	keyMaxCount = "$maxCount"
	keyMaxAge   = "$maxAge" // seconds
	keyCreated  = "xk6-broker"
)

// deleted is what keyTruncate is of a stream that was deleted and not written to since.
const deleted = math.MaxInt64

// about is what the metadata of a stream say, and how to replace them if nobody else does.
type about struct {
	values map[string]json.RawMessage
	expect func(*streams.AppendReq_Options)
}

func (m *about) number(name string) (n int64, there bool) {
	return n, json.Unmarshal(m.values[name], &n) == nil
}

func (m *about) set(name string, value int64) { m.values[name] = fmt.Append(nil, value) }

// topic is the metadata of a stream; the error is errNoTopic where it does not exist, and they are those that there are all the same.
func (c *conn) topic(ctx context.Context, name string) (*about, error) {
	m := &about{values: map[string]json.RawMessage{}}
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

// last is the last event of a stream; nil where it has none.
func (c *conn) last(ctx context.Context, stream string) (event *streams.ReadResp_ReadEvent_RecordedEvent, err error) {
	err = c.call(ctx, func(ctx context.Context, n *node, o ...grpc.CallOption) error {
		request := reading(stream, false)
		request.Options.ReadDirection = streams.ReadReq_Options_Backwards
		request.Options.CountOption = &streams.ReadReq_Options_Count{Count: 1}
		request.Options.GetStream().RevisionOption = &streams.ReadReq_Options_StreamOptions_End{End: &shared.Empty{}}
		call, err := n.streams.Read(ctx, request, o...)
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

// reading is the part that all requests to read have.
func reading(stream string, resolve bool) *streams.ReadReq {
	return &streams.ReadReq{Options: &streams.ReadReq_Options{
		StreamOption: &streams.ReadReq_Options_Stream{Stream: &streams.ReadReq_Options_StreamOptions{StreamIdentifier: identifier(stream)}},
		ResolveLinks: resolve,
		FilterOption: &streams.ReadReq_Options_NoFilter{NoFilter: &shared.Empty{}},
		UuidOption:   &streams.ReadReq_Options_UUIDOption{Content: &streams.ReadReq_Options_UUIDOption_Structured{Structured: &shared.Empty{}}},
	}}
}

// write replaces the metadata of a stream.
func (c *conn) write(ctx context.Context, name string, m *about) error {
	data, err := json.Marshal(m.values)
	if err != nil {
		return err
	}
	_, err = c.append(ctx, "$$"+name, m.expect, &streams.AppendReq_ProposedMessage{
		Id: newID(), Metadata: kinds("$metadata", "application/json"), Data: data,
	})
	return err
}

// CreateTopic writes metadata, also of what was deleted, whose old events stay gone.
func (c *conn) CreateTopic(ctx context.Context, s driver.TopicSpec) error {
	return c.change(ctx, s.Name, func(m *about, there bool) bool {
		if there {
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

// change changes metadata, once more where others did at the same time, for as long as how is true.
func (c *conn) change(ctx context.Context, name string, how func(m *about, there bool) bool) error {
	for {
		m, err := c.topic(ctx, name)
		if err != nil && !errors.Is(err, errNoTopic) {
			return err
		}
		if !how(m, err == nil) {
			return nil
		}
		if err := c.write(ctx, name, m); !errors.Is(err, errChanged) {
			return err
		}
	}
}

// DescribeTopic tells what the metadata say.
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

// DeleteTopic deletes the stream, so that it can be written to again: its numbers go on then. Its groups go with it, and what they have parked.
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
	return c.call(ctx, func(ctx context.Context, n *node, o ...grpc.CallOption) error {
		_, err := n.streams.Delete(ctx, &streams.DeleteReq{Options: &streams.DeleteReq_Options{
			StreamIdentifier: identifier(name), ExpectedStreamRevision: &streams.DeleteReq_Options_Any{Any: &shared.Empty{}},
		}}, o...)
		return err
	})
}

// PurgeTopic truncates the stream behind its last event. What groups have read of it before is in their memory, where nothing reaches it: they are made
// anew, with the same settings, from there on.
func (c *conn) PurgeTopic(ctx context.Context, name string) error {
	event, err := c.last(ctx, name)
	if err != nil {
		return err
	}
	missing := false
	err = c.change(ctx, name, func(m *about, there bool) bool {
		missing = !there
		if before, _ := m.number(keyTruncate); missing || event == nil || before > int64(event.GetStreamRevision()) { //gosec:disable G115 -- a count, far below the limit
			return false
		}
		m.set(keyTruncate, int64(event.GetStreamRevision())+1) //gosec:disable G115 -- a count, far below the limit
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
		err = errors.Join(err, c.createGroup(ctx, name, g.GetGroupName(), settingsOf(g), after(event.GetStreamRevision())))
	}
	return err
}
