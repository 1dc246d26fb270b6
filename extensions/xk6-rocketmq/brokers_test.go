package rocketmq

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"testing"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A broker that lets its consumers wait hides nothing of what another has, also where there is room for one message from each only.
func TestABrokerWithoutMessagesHidesNothing(t *testing.T) {
	d, err := driver.Lookup("rocketmq")
	if err != nil {
		t.Fatal(err)
	}
	options := func(scope driver.Scope) driver.Values {
		v, err := d.Resolve(scope, driver.Latency, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	connect := options(driver.OnConnect)
	s, err := newServers(driver.Target{URL: &url.URL{}, Hosts: []string{"127.0.0.1"}, Options: connect})
	if err != nil {
		t.Fatal(err)
	}
	c := &conn{name: "test", options: connect, servers: s}
	empty, full := &broker{}, &broker{has: 3}
	r := c.newConsumer(driver.ConsumerConfig{Topic: "t", Group: "g", Prefetch: 2, Options: options(driver.OnConsumer)})
	r.route = newRoute([]*v2.MessageQueue{empty.queue(t, "a"), full.queue(t, "b")})
	if err := r.serve(within(t)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b := make(driver.Batch, 1)
		if _, err := r.Receive(within(t), b); err != nil {
			t.Fatal(err)
		}
		if err := r.Settle(within(t), b, driver.Ack); err != nil {
			t.Fatal(err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel() // the call that waits has no answer
	if err := r.Close(gone); err != nil {
		t.Error(err)
	}
	if err := c.Close(within(t)); err != nil {
		t.Error(err)
	}
}

// broker is a server that has so many messages, and then lets consumers wait.
type broker struct {
	v2.UnimplementedMessagingServiceServer
	has int
}

// queue starts the server, and is one of its queues.
func (b *broker) queue(t *testing.T, name string) *v2.MessageQueue {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	v2.RegisterMessagingServiceServer(s, b)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return &v2.MessageQueue{
		Topic: &v2.Resource{Name: "t"}, AcceptMessageTypes: []v2.MessageType{v2.MessageType_NORMAL},
		Broker: &v2.Broker{Name: name, Endpoints: &v2.Endpoints{Addresses: []*v2.Address{{Host: "127.0.0.1", Port: int32(n)}}}},
	}
}

func ok() *v2.Status { return &v2.Status{Code: v2.Code_OK} }

func (b *broker) Telemetry(s v2.MessagingService_TelemetryServer) error {
	for {
		said, err := s.Recv()
		if err != nil {
			return err
		}
		if err := s.Send(said); err != nil {
			return err
		}
	}
}

func (b *broker) ReceiveMessage(_ *v2.ReceiveMessageRequest, s v2.MessagingService_ReceiveMessageServer) error {
	if b.has == 0 {
		<-s.Context().Done()
		return s.Context().Err()
	}
	b.has--
	handle := "handle"
	m := &v2.Message{Body: []byte("x"), SystemProperties: &v2.SystemProperties{MessageId: "id", ReceiptHandle: &handle}}
	return s.Send(&v2.ReceiveMessageResponse{Content: &v2.ReceiveMessageResponse_Message{Message: m}})
}

func (b *broker) Heartbeat(context.Context, *v2.HeartbeatRequest) (*v2.HeartbeatResponse, error) {
	return &v2.HeartbeatResponse{Status: ok()}, nil
}

func (b *broker) AckMessage(context.Context, *v2.AckMessageRequest) (*v2.AckMessageResponse, error) {
	return &v2.AckMessageResponse{Status: ok()}, nil
}
