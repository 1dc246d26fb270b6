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

// anyRevision is the expectation of an append to the end of the stream.
func anyRevision(o *streams.AppendReq_Options) {
	o.ExpectedStreamRevision = &streams.AppendReq_Options_Any{Any: &shared.Empty{}}
}

// append appends events to a stream, all or none, and returns the revision of the last one.
func (c *conn) append(
	ctx context.Context, stream string, expect func(*streams.AppendReq_Options),
	events ...*streams.AppendReq_ProposedMessage,
) (last uint64, err error) {
	err = c.call(ctx, func(ctx context.Context, o grpc.CallOption) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		call, err := c.events.Append(ctx, o)
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
			return fmt.Errorf("an unknown answer: %v", answer)
		}
		last = answer.GetSuccess().GetCurrentRevision()
		return nil
	})
	return last, err
}

// errHalf is the error of an append whose connection broke.
var errHalf = status.Error(codes.Unavailable, "the connection broke before all of the append was sent")

// transmit sends an append and waits for the answer. A half sent one is canceled before its error
// is read: gRPC would repeat a call that no server has seen, and the server would confirm the half.
func transmit(
	call grpc.ClientStreamingClient[streams.AppendReq, streams.AppendResp], cancel func(),
	o *streams.AppendReq_Options, events []*streams.AppendReq_ProposedMessage,
) (*streams.AppendResp, error) {
	err := call.Send(&streams.AppendReq{Content: &streams.AppendReq_Options_{Options: o}})
	for i := 0; i < len(events) && err == nil; i++ {
		err = call.Send(&streams.AppendReq{Content: &streams.AppendReq_ProposedMessage_{ProposedMessage: events[i]}})
	}
	if err == nil {
		return call.CloseAndRecv()
	}
	cancel()
	if reason := call.RecvMsg(&streams.AppendResp{}); reason != nil && status.Code(reason) != codes.Canceled {
		return nil, reason // the server's
	}
	return nil, errHalf
}
