package double

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// stream has all events of a stream, including the truncated ones.
type stream struct {
	events     []*event
	ids        map[eventID]uint64 // their revisions
	tombstoned bool
	changed    chan struct{} // closed by the next append
}

// eventID is a UUID in the form of this driver.
type eventID struct{ most, least int64 }

func idOf(id *shared.UUID) eventID {
	return eventID{id.GetStructured().GetMostSignificantBits(), id.GetStructured().GetLeastSignificantBits()}
}

type event struct {
	revision, position uint64
	id                 *shared.UUID
	metadata           map[string]string
	custom, data       []byte
}

func (s *Server) stream(name string) *stream {
	if s.streams[name] == nil {
		s.streams[name] = &stream{ids: map[eventID]uint64{}, changed: make(chan struct{})}
	}
	return s.streams[name]
}

// about returns the present metadata of a stream.
func (s *Server) about(name string) (all map[string]any) {
	if meta := s.streams["$$"+name]; meta != nil && len(meta.events) > 0 {
		_ = json.Unmarshal(meta.events[len(meta.events)-1].data, &all)
	}
	return all
}

func number(all map[string]any, name string) (int64, bool) {
	n, ok := all[name].(float64)
	if n >= math.MaxInt64 {
		return math.MaxInt64, ok
	}
	return int64(n), ok
}

// visible returns the events that are not truncated.
func (s *Server) visible(name string) []*event {
	all := s.streams[name]
	if all == nil {
		return nil
	}
	first, about := int64(0), s.about(name)
	if most, ok := number(about, "$maxCount"); ok {
		first = max(0, int64(len(all.events))-most)
	}
	before, _ := number(about, "$tb")
	return all.events[min(max(first, before), int64(len(all.events))):]
}

// add appends events. A deleted stream exists again, without its old events.
func (s *Server) add(name string, proposed []*streams.AppendReq_ProposedMessage) uint64 {
	to := s.stream(name)
	own, isMeta := strings.CutPrefix(name, "$$")
	if !isMeta {
		own = name
	}
	s.put(to, proposed)
	if before, _ := number(s.about(own), "$tb"); before == math.MaxInt64 && (!isMeta || len(s.stream(own).events) > 0) {
		about := s.about(own)
		last := len(s.stream(own).events)
		if !isMeta {
			last -= len(proposed)
		}
		about["$tb"] = last
		data, _ := json.Marshal(about)
		s.put(s.stream("$$"+own), []*streams.AppendReq_ProposedMessage{{Id: &shared.UUID{}, Data: data}})
	}
	s.live(name)
	return uint64(len(to.events) - 1) //gosec:disable G115 -- a number to a test, and small
}

func (s *Server) put(to *stream, proposed []*streams.AppendReq_ProposedMessage) {
	now := strconv.FormatInt(time.Now().UnixNano()/100, 10)
	for _, p := range proposed {
		e := &event{
			revision: uint64(len(to.events)),
			position: s.position,
			id:       p.GetId(),
			custom:   p.GetCustomMetadata(),
			data:     p.GetData(),
		}
		e.metadata = map[string]string{
			"type":         p.GetMetadata()["type"],
			"content-type": p.GetMetadata()["content-type"],
			"created":      now,
		}
		to.events = append(to.events, e)
		to.ids[idOf(p.GetId())] = e.revision
		s.position++
	}
	close(to.changed)
	to.changed = make(chan struct{})
}

// Append implements the call. Events that are there already, by their ids, are not
// added once more.
func (t *streaming) Append(call grpc.ClientStreamingServer[streams.AppendReq, streams.AppendResp]) error {
	first, err := call.Recv()
	if err != nil {
		return err
	}
	var proposed []*streams.AppendReq_ProposedMessage
	size := 0
	for {
		part, err := call.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		p := part.GetProposedMessage()
		own := len(p.GetData()) + len(p.GetCustomMetadata()) + 2*len(p.GetMetadata()["type"])
		if size += own; own > maxEventSize {
			return refuse(
				call.Context(), codes.InvalidArgument, "maximum-append-event-size-exceeded",
				fmt.Sprintf("Event Size: %d, exceeds Maximum Append Event Size of %d.", own, maxEventSize),
			)
		}
		if most := cmp.Or(t.s.config.MaxAppendSize, maxAppendSize); size > most {
			return refuse(
				call.Context(), codes.InvalidArgument, "maximum-append-size-exceeded",
				fmt.Sprintf("Maximum Append Size of %d Exceeded.", most),
			)
		}
		proposed = append(proposed, p)
	}
	if err := t.s.lead(call.Context()); err != nil {
		return err
	}
	answer, err := t.s.append(call.Context(), first.GetOptions(), proposed)
	if err != nil {
		return err
	}
	return call.SendAndClose(answer)
}

func (s *Server) append(
	ctx context.Context, o *streams.AppendReq_Options, proposed []*streams.AppendReq_ProposedMessage,
) (*streams.AppendResp, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := string(o.GetStreamIdentifier().GetStreamName())
	to := s.stream(name)
	if to.tombstoned {
		return nil, refuse(ctx, codes.FailedPrecondition, "stream-deleted", "Event stream '"+name+"' is deleted.")
	}
	s.appends++
	last, present := uint64(len(to.events)-1), len(s.visible(name)) > 0 //gosec:disable G115 -- a number to a test, and small
	switch expected := o.GetExpectedStreamRevision().(type) {
	case *streams.AppendReq_Options_Revision:
		present = present && expected.Revision == last
	case *streams.AppendReq_Options_NoStream:
		present = !present
	case *streams.AppendReq_Options_Any:
		present = true
		if len(proposed) > 0 {
			if revision, before := to.ids[idOf(proposed[len(proposed)-1].GetId())]; before {
				return success(revision), nil
			}
		}
	}
	if !present {
		return &streams.AppendResp{
			Result: &streams.AppendResp_WrongExpectedVersion_{
				WrongExpectedVersion: &streams.AppendResp_WrongExpectedVersion{},
			},
		}, nil
	}
	return success(s.add(name, proposed)), nil
}

func success(revision uint64) *streams.AppendResp {
	return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: &streams.AppendResp_Success{
		CurrentRevisionOption: &streams.AppendResp_Success_CurrentRevision{CurrentRevision: revision},
	}}}
}

// Delete implements the call: it truncates all in the metadata.
func (t *streaming) Delete(_ context.Context, r *streams.DeleteReq) (*streams.DeleteResp, error) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	name := string(r.GetOptions().GetStreamIdentifier().GetStreamName())
	t.s.put(
		t.s.stream("$$"+name),
		[]*streams.AppendReq_ProposedMessage{{Id: &shared.UUID{}, Data: []byte(`{"$tb":9223372036854775807}`)}},
	)
	return &streams.DeleteResp{}, nil
}

// Tombstone implements the call.
func (t *streaming) Tombstone(_ context.Context, r *streams.TombstoneReq) (*streams.TombstoneResp, error) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.stream(string(r.GetOptions().GetStreamIdentifier().GetStreamName())).tombstoned = true
	return &streams.TombstoneResp{}, nil
}

// Read implements the call for one stream.
func (t *streaming) Read(r *streams.ReadReq, call grpc.ServerStreamingServer[streams.ReadResp]) error {
	o := r.GetOptions()
	name := string(o.GetStream().GetStreamIdentifier().GetStreamName())
	if o.GetSubscription() == nil {
		return t.once(o, name, call)
	}
	if err := t.s.lead(call.Context()); err != nil {
		return err
	}
	next := uint64(0)
	t.s.mu.Lock()
	switch from := o.GetStream().GetRevisionOption().(type) {
	case *streams.ReadReq_Options_StreamOptions_Revision:
		next = from.Revision + 1
	case *streams.ReadReq_Options_StreamOptions_End:
		next = uint64(len(t.s.stream(name).events))
	}
	t.s.mu.Unlock()
	confirmed := &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: "catch-up"}
	if err := call.Send(
		&streams.ReadResp{Content: &streams.ReadResp_Confirmation{Confirmation: confirmed}},
	); err != nil {
		return err
	}
	for {
		t.s.mu.Lock()
		changed := t.s.stream(name).changed
		some := t.s.visible(name)
		tombstoned := t.s.stream(name).tombstoned
		t.s.mu.Unlock()
		if tombstoned {
			return refuse(
				call.Context(), codes.FailedPrecondition, "stream-deleted", "Event stream '"+name+"' is deleted.",
			)
		}
		for _, e := range some {
			if e.revision >= next {
				if err := call.Send(e.read(name)); err != nil {
					return err
				}
				next = e.revision + 1
			}
		}
		select {
		case <-changed:
		case <-call.Context().Done():
			return call.Context().Err()
		case <-t.s.stop:
			return nil
		}
	}
}

// once reads the present events.
func (t *streaming) once(
	o *streams.ReadReq_Options, name string, call grpc.ServerStreamingServer[streams.ReadResp],
) error {
	if err := t.s.lead(call.Context()); err != nil {
		return err
	}
	t.s.mu.Lock()
	all, tombstoned := t.s.visible(name), t.s.stream(name).tombstoned
	t.s.mu.Unlock()
	if tombstoned {
		return refuse(call.Context(), codes.FailedPrecondition, "stream-deleted", "Event stream '"+name+"' is deleted.")
	}
	if len(all) == 0 {
		return call.Send(
			&streams.ReadResp{
				Content: &streams.ReadResp_StreamNotFound_{StreamNotFound: &streams.ReadResp_StreamNotFound{
					StreamIdentifier: o.GetStream().GetStreamIdentifier(),
				}},
			},
		)
	}
	for i := range min(uint64(len(all)), o.GetCount()) {
		e := all[i]
		if o.GetReadDirection() == streams.ReadReq_Options_Backwards {
			e = all[uint64(len(all))-1-i]
		}
		if err := call.Send(e.read(name)); err != nil {
			return err
		}
	}
	return nil
}

func (e *event) read(name string) *streams.ReadResp {
	return &streams.ReadResp{
		Content: &streams.ReadResp_Event{
			Event: &streams.ReadResp_ReadEvent{Event: &streams.ReadResp_ReadEvent_RecordedEvent{
				Id:               e.id,
				StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(name)},
				StreamRevision:   e.revision,
				CommitPosition:   e.position,
				Metadata:         e.metadata,
				CustomMetadata:   e.custom,
				Data:             e.data,
			}},
		},
	}
}
