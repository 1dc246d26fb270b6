// Package raw has loops written by hand with the stubs that the driver uses, which move messages as
// fast as they can. Every loop returns the time for its messages.
package raw

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/persistent"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/streams"
	"google.golang.org/grpc"
)

// Append appends count messages, batch of them by each append.
func Append(channel *grpc.ClientConn, stream string, body []byte, count, batch int) (time.Duration, error) {
	client, ctx := streams.NewStreamsClient(channel), context.Background()
	kind := map[string]string{"type": "message", "content-type": "application/octet-stream"}
	start := time.Now()
	for done := 0; done < count; {
		call, err := client.Append(ctx)
		if err != nil {
			return 0, err
		}
		err = call.Send(&streams.AppendReq{Content: &streams.AppendReq_Options_{Options: &streams.AppendReq_Options{
			StreamIdentifier:       &shared.StreamIdentifier{StreamName: []byte(stream)},
			ExpectedStreamRevision: &streams.AppendReq_Options_Any{Any: &shared.Empty{}},
		}}})
		for i := 0; i < min(batch, count-done) && err == nil; i++ {
			err = call.Send(
				&streams.AppendReq{
					Content: &streams.AppendReq_ProposedMessage_{ProposedMessage: &streams.AppendReq_ProposedMessage{
						Id: id(), Metadata: kind, Data: body,
					}},
				},
			)
		}
		if err != nil {
			return 0, err
		}
		answer, err := call.CloseAndRecv()
		if err != nil {
			return 0, err
		}
		if answer.GetSuccess() == nil {
			return 0, errors.New("not appended")
		}
		done += batch
	}
	return time.Since(start), nil
}

func id() *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits:  rand.Int64(),
		LeastSignificantBits: rand.Int64(), //gosec:disable G404 -- an identifier, no secret
	}}}
}

// Consume receives count messages of an existing group, and acknowledges batch at a time.
func Consume(channel *grpc.ClientConn, stream, group string, count, batch, buffer int) (time.Duration, error) {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	call, err := persistent.NewPersistentSubscriptionsClient(channel).Read(ctx)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := call.Send(&persistent.ReadReq{Content: &persistent.ReadReq_Options_{Options: &persistent.ReadReq_Options{
		StreamOption: &persistent.ReadReq_Options_StreamIdentifier{
			StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(stream)},
		},
		GroupName:  group,
		BufferSize: int32(buffer), //gosec:disable G115 -- a number of a test, and small
		UuidOption: &persistent.ReadReq_Options_UUIDOption{
			Content: &persistent.ReadReq_Options_UUIDOption_Structured{Structured: &shared.Empty{}},
		},
	}}}); err != nil {
		return 0, err
	}
	var ids []*shared.UUID
	var subscription string
	for done := 0; done < count; {
		part, err := call.Recv()
		if err != nil {
			return 0, err
		}
		if confirmed := part.GetSubscriptionConfirmation(); confirmed != nil {
			subscription = confirmed.GetSubscriptionId()
			continue
		}
		ids = append(ids, part.GetEvent().GetEvent().GetId())
		if done++; len(ids) == batch || done == count {
			if err := call.Send(
				&persistent.ReadReq{
					Content: &persistent.ReadReq_Ack_{Ack: &persistent.ReadReq_Ack{Id: []byte(subscription), Ids: ids}},
				},
			); err != nil {
				return 0, err
			}
			ids = nil
		}
	}
	return time.Since(start), nil
}
