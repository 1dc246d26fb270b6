//gosec:disable G115 -- small counts of a test
package double

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/persistent"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

type groupKey struct{ stream, name string }

// group is a persistent subscription.
type group struct {
	key      groupKey
	settings *persistent.CreateReq_Settings
	start    string
	next     uint64   // the revision of the first event that no member got
	retry    []*given // to be delivered again, before that
	with     map[eventID]*given
	members  []*member
	parked   []*given
	settled  int // since the checkpoint
	done     int64
	dropped  chan struct{} // closed when the group is deleted
}

// given is an event at a member.
type given struct {
	*event
	to      *member
	retries int32
	until   time.Time
}

// member is one stream of a consumer.
type member struct {
	name  string
	slots int
	send  []*persistent.ReadResp // not sent yet
	wake  chan struct{}
}

func named(id *shared.StreamIdentifier, name string) groupKey {
	return groupKey{string(id.GetStreamName()), name}
}

func (g *sharing) absent(ctx context.Context, k groupKey) error {
	return refuse(
		ctx, codes.NotFound, "persistent-subscription-does-not-exist",
		fmt.Sprintf("Subscription group %s on stream %s does not exist.", k.name, k.stream),
	)
}

// Create implements the call.
func (g *sharing) Create(ctx context.Context, r *persistent.CreateReq) (*persistent.CreateResp, error) {
	if err := g.s.lead(ctx); err != nil {
		return nil, err
	}
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	o := r.GetOptions()
	k := named(o.GetStream().GetStreamIdentifier(), o.GetGroupName())
	if g.s.groups[k] != nil {
		return nil, refuse(
			ctx, codes.AlreadyExists, "persistent-subscription-exists",
			fmt.Sprintf("Subscription group %s on stream %s exists.", k.name, k.stream),
		)
	}
	if s := o.GetSettings(); s.GetReadBatchSize() >= s.GetHistoryBufferSize() {
		return nil, refuse(
			ctx, codes.Internal, "persistent-subscription-failed",
			"The buffer size must be larger than the read batch size.",
		)
	}
	made := &group{
		key:      k,
		settings: o.GetSettings(),
		start:    "0",
		with:     map[eventID]*given{},
		done:     -1,
		dropped:  make(chan struct{}),
	}
	switch from := o.GetStream().GetRevisionOption().(type) {
	case *persistent.CreateReq_StreamOptions_Revision:
		made.next, made.start = from.Revision, strconv.FormatUint(from.Revision, 10)
	case *persistent.CreateReq_StreamOptions_End:
		made.next, made.start = uint64(len(g.s.stream(k.stream).events)), "-1"
	}
	g.s.groups[k] = made
	return &persistent.CreateResp{}, nil
}

// Delete implements the call.
func (g *sharing) Delete(ctx context.Context, r *persistent.DeleteReq) (*persistent.DeleteResp, error) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	k := named(r.GetOptions().GetStreamIdentifier(), r.GetOptions().GetGroupName())
	gone := g.s.groups[k]
	if gone == nil {
		return nil, g.absent(ctx, k)
	}
	delete(g.s.groups, k)
	close(gone.dropped)
	return &persistent.DeleteResp{}, nil
}

// GetInfo implements the call.
func (g *sharing) GetInfo(ctx context.Context, r *persistent.GetInfoReq) (*persistent.GetInfoResp, error) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	k := named(r.GetOptions().GetStreamIdentifier(), r.GetOptions().GetGroupName())
	if g.s.groups[k] == nil {
		return nil, g.absent(ctx, k)
	}
	return &persistent.GetInfoResp{SubscriptionInfo: g.s.info(g.s.groups[k])}, nil
}

// List implements the call for one stream.
func (g *sharing) List(ctx context.Context, r *persistent.ListReq) (*persistent.ListResp, error) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	stream := string(r.GetOptions().GetListForStream().GetStream().GetStreamName())
	answer := &persistent.ListResp{}
	for k, joined := range g.s.groups {
		if k.stream == stream {
			answer.Subscriptions = append(answer.Subscriptions, g.s.info(joined))
		}
	}
	if len(answer.GetSubscriptions()) == 0 {
		return nil, g.absent(ctx, groupKey{stream: stream})
	}
	return answer, nil
}

// info describes a group. It is behind if it has more to read than its buffer has room for.
func (s *Server) info(g *group) *persistent.SubscriptionInfo {
	waiting := int32(len(s.ahead(g)))
	status := "Live"
	if waiting > g.settings.GetHistoryBufferSize() {
		waiting, status = g.settings.GetHistoryBufferSize(), "Behind"
	}
	set := g.settings
	info := &persistent.SubscriptionInfo{
		EventSource: g.key.stream, GroupName: g.key.name, Status: status, StartFrom: g.start,
		ReadBufferCount: waiting, RetryBufferCount: int32(len(g.retry)), OutstandingMessagesCount: int32(len(g.with)),
		TotalInFlightMessages: int32(len(g.with)), ParkedMessageCount: int64(len(g.parked)),
		ResolveLinkTos: set.GetResolveLinks(), ExtraStatistics: set.GetExtraStatistics(),
		MessageTimeoutMilliseconds: set.GetMessageTimeoutMs(),
		MaxRetryCount:              set.GetMaxRetryCount(), LiveBufferSize: set.GetLiveBufferSize(),
		BufferSize:    set.GetHistoryBufferSize(),
		ReadBatchSize: set.GetReadBatchSize(), CheckPointAfterMilliseconds: set.GetCheckpointAfterMs(),
		MinCheckPointCount: set.GetMinCheckpointCount(),
		MaxCheckPointCount: set.GetMaxCheckpointCount(), MaxSubscriberCount: set.GetMaxSubscriberCount(),
		NamedConsumerStrategy: set.GetConsumerStrategy(),
	}
	if g.done >= 0 {
		info.LastCheckpointedEventPosition = strconv.FormatInt(g.done, 10)
	}
	for _, m := range g.members {
		in := int32(0)
		for _, e := range g.with {
			if e.to == m {
				in++
			}
		}
		info.Connections = append(
			info.Connections,
			&persistent.SubscriptionInfo_ConnectionInfo{
				ConnectionName:   m.name,
				InFlightMessages: in,
				AvailableSlots:   int32(m.slots),
			},
		)
	}
	return info
}

// ahead returns the events that no member got.
func (s *Server) ahead(g *group) []*event {
	all := s.visible(g.key.stream)
	i, _ := slices.BinarySearchFunc(
		all, g.next, func(e *event, next uint64) int { return cmp.Compare(e.revision, next) },
	)
	return all[i:]
}

// Read implements the call: events in one direction, settlements in the other.
func (g *sharing) Read(call grpc.BidiStreamingServer[persistent.ReadReq, persistent.ReadResp]) error {
	ctx := call.Context()
	if err := g.s.lead(ctx); err != nil {
		return err
	}
	first, err := call.Recv()
	if err != nil {
		return err
	}
	o := first.GetOptions()
	m := &member{slots: int(o.GetBufferSize()), wake: make(chan struct{}, 1)}
	if given, _ := metadata.FromIncomingContext(ctx); len(given.Get("connection-name")) > 0 {
		m.name = given.Get("connection-name")[0]
	}
	joined, err := g.join(ctx, named(o.GetStreamIdentifier(), o.GetGroupName()), m)
	if err != nil {
		return err
	}
	defer g.s.leave(joined, m)
	confirmed := &persistent.ReadResp_SubscriptionConfirmation{SubscriptionId: "persistent"}
	if err := call.Send(
		&persistent.ReadResp{
			Content: &persistent.ReadResp_SubscriptionConfirmation_{SubscriptionConfirmation: confirmed},
		},
	); err != nil {
		return err
	}
	go func() { // ends with the call
		for {
			r, err := call.Recv()
			if err != nil {
				return
			}
			g.s.settle(joined, r)
		}
	}()
	for {
		select {
		case <-m.wake:
		case <-joined.dropped:
			return g.absent(ctx, joined.key)
		case <-ctx.Done():
			return ctx.Err()
		case <-g.s.stop:
			return nil
		}
		g.s.mu.Lock()
		send := m.send
		m.send = nil
		g.s.mu.Unlock()
		for _, part := range send {
			if err := call.Send(part); err != nil {
				return err
			}
		}
	}
}

func (e *given) read(stream string) *persistent.ReadResp {
	both := &persistent.ReadResp_ReadEvent{Event: &persistent.ReadResp_ReadEvent_RecordedEvent{
		Id: e.id, StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(stream)}, StreamRevision: e.revision,
		CommitPosition: e.position,
		Metadata:       e.metadata, CustomMetadata: e.custom, Data: e.data,
	}, Count: &persistent.ReadResp_ReadEvent_RetryCount{RetryCount: e.retries}}
	return &persistent.ReadResp{Content: &persistent.ReadResp_Event{Event: both}}
}

func (g *sharing) join(ctx context.Context, k groupKey, m *member) (*group, error) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	joined := g.s.groups[k]
	if joined == nil {
		return nil, g.absent(ctx, k)
	}
	if most := joined.settings.GetMaxSubscriberCount(); most > 0 && len(joined.members) >= int(most) {
		return nil, refuse(
			ctx, codes.FailedPrecondition, "maximum-subscribers-reached", "Maximum subscriptions reached.",
		)
	}
	joined.members = append(joined.members, m)
	g.s.push(joined)
	return joined, nil
}

// leave makes the unsettled events of a member be delivered again.
func (s *Server) leave(g *group, m *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.members = slices.DeleteFunc(g.members, func(other *member) bool { return other == m })
	for _, e := range g.with {
		if e.to == m {
			s.retry(g, e)
		}
	}
	s.push(g)
}

// again delivers a message again, or parks it after MaxRetryCount deliveries.
func (s *Server) again(g *group, e *given) {
	if e.retries >= g.settings.GetMaxRetryCount() {
		delete(g.with, idOf(e.id))
		e.to.slots++
		g.parked = append(g.parked, e)
		return
	}
	s.retry(g, e)
}

func (s *Server) retry(g *group, e *given) {
	delete(g.with, idOf(e.id))
	e.to.slots++
	e.retries++
	g.retry = append(g.retry, e)
	slices.SortFunc(g.retry, func(a, b *given) int { return cmp.Compare(a.revision, b.revision) })
}

// live serves the groups of a stream that grew.
func (s *Server) live(name string) {
	for k, g := range s.groups {
		if k.stream == name {
			s.push(g)
		}
	}
}

// push gives what waits to members with room, in turn, or to one of them for as long as it has
// room.
func (s *Server) push(g *group) {
	ahead := s.ahead(g)
	for {
		i := slices.IndexFunc(g.members, func(m *member) bool { return m.slots > 0 })
		if i < 0 || len(g.retry) == 0 && len(ahead) == 0 {
			return
		}
		m := g.members[i]
		var e *given
		if len(g.retry) > 0 {
			e, g.retry = g.retry[0], g.retry[1:]
		} else {
			e, ahead = &given{event: ahead[0]}, ahead[1:]
			g.next = e.revision + 1
		}
		e.to, e.until = m, time.Now().Add(time.Duration(g.settings.GetMessageTimeoutMs())*time.Millisecond)
		g.with[idOf(e.id)] = e
		m.slots--
		m.send = append(m.send, e.read(g.key.stream))
		select {
		case m.wake <- struct{}{}:
		default:
		}
		if g.settings.GetConsumerStrategy() == "RoundRobin" {
			g.members = append(slices.Delete(g.members, i, i+1), m)
		}
	}
}

// settle handles a consumer's settlements. It ignores events that are not at a consumer.
func (s *Server) settle(g *group, r *persistent.ReadReq) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := r.GetAck().GetIds()
	if r.GetNack() != nil {
		ids = r.GetNack().GetIds()
	}
	for _, id := range ids {
		e := g.with[idOf(id)]
		if e == nil {
			continue
		}
		switch action := r.GetNack().GetAction(); {
		case action == persistent.ReadReq_Nack_Retry:
			s.again(g, e)
			continue
		case action == persistent.ReadReq_Nack_Park:
			g.parked = append(g.parked, e)
		}
		delete(g.with, idOf(id))
		e.to.slots++
		g.settled++
	}
	s.checkpoint(g)
	s.push(g)
}

// checkpoint stores the position of a group after MinCheckpointCount settlements.
func (s *Server) checkpoint(g *group) {
	if g.settled < int(g.settings.GetMinCheckpointCount()) {
		return
	}
	g.settled, g.done = 0, int64(g.next)-1
	for _, e := range g.with {
		g.done = min(g.done, int64(e.revision)-1)
	}
	for _, e := range g.retry {
		g.done = min(g.done, int64(e.revision)-1)
	}
}

// expire delivers events again after MessageTimeout.
func (s *Server) expire() {
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-s.stop:
			return
		}
		s.mu.Lock()
		for _, g := range s.groups {
			late := 0
			for _, e := range g.with {
				if time.Now().After(e.until) {
					s.again(g, e)
					late++
				}
			}
			if late > 0 {
				s.push(g)
			}
		}
		s.mu.Unlock()
	}
}
