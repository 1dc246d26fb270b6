package kurrentdb

import (
	"context"
	"fmt"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// identifier names a stream.
func identifier(stream string) *shared.StreamIdentifier {
	return &shared.StreamIdentifier{StreamName: []byte(stream)}
}

// whatever is the expectation of an append that goes to the end of the stream, wherever that is.
func whatever(o *streams.AppendReq_Options) {
	o.ExpectedStreamRevision = &streams.AppendReq_Options_Any{Any: &shared.Empty{}}
}

// append appends events to a stream, all or none, and tells the revision of the last one.
func (c *conn) append(ctx context.Context, stream string, expect func(*streams.AppendReq_Options), events ...*streams.AppendReq_ProposedMessage) (last uint64, err error) {
	err = c.call(ctx, func(ctx context.Context, n *node, o ...grpc.CallOption) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		call, err := n.streams.Append(ctx, o...)
		if err != nil {
			return err
		}
		options := &streams.AppendReq_Options{StreamIdentifier: identifier(stream)}
		expect(options)
		answer, err := transmit(call, cancel, options, events)
		if err != nil {
			return err
		}
		if answer.GetWrongExpectedVersion() != nil {
			return errChanged
		}
		if answer.GetSuccess() == nil {
			return fmt.Errorf("an answer of a sort that this driver does not know: %v", answer)
		}
		last = answer.GetSuccess().GetCurrentRevision()
		return nil
	})
	return last, err
}

// errHalf is what became of an append that the connection broke under.
var errHalf = status.Error(codes.Unavailable, "the connection broke before all of the append was sent")

// transmit sends an append and waits for the answer. One that could not be sent as a whole is given up before it is asked why: gRPC begins a call anew that
// no server has seen, with what was sent of it until then, and would have that half appended, and confirmed.
func transmit(
	call grpc.ClientStreamingClient[streams.AppendReq, streams.AppendResp], giveUp func(), o *streams.AppendReq_Options, events []*streams.AppendReq_ProposedMessage,
) (*streams.AppendResp, error) {
	err := call.Send(&streams.AppendReq{Content: &streams.AppendReq_Options_{Options: o}})
	for i := 0; i < len(events) && err == nil; i++ {
		err = call.Send(&streams.AppendReq{Content: &streams.AppendReq_ProposedMessage_{ProposedMessage: events[i]}})
	}
	if err == nil {
		return call.CloseAndRecv()
	}
	giveUp()
	if why := call.RecvMsg(&streams.AppendResp{}); why != nil && status.Code(why) != codes.Canceled {
		return nil, why // as the server says
	}
	return nil, errHalf
}
