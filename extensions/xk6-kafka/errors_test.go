package kafka

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func TestKinds(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, c := range []struct {
		err  error
		want driver.Kind
	}{
		{kerr.MessageTooLarge, driver.Rejected},
		{kerr.InvalidConfig, driver.Rejected},
		{kerr.InvalidReplicationFactor, driver.Rejected},
		{kerr.InvalidTopicException, driver.Rejected},
		{kerr.NotEnoughReplicas, driver.Rejected},
		{kerr.NotEnoughReplicasAfterAppend, driver.Timeout},
		{kerr.RequestTimedOut, driver.Timeout},
		{kerr.UnknownTopicOrPartition, driver.NotFound},
		{kerr.GroupIDNotFound, driver.NotFound},
		{kerr.TopicAuthorizationFailed, driver.Denied},
		{kerr.SaslAuthenticationFailed, driver.Denied},
		{kerr.ThrottlingQuotaExceeded, driver.Throttled},
		{kerr.UnsupportedVersion, driver.Unsupported},
		{kerr.NotLeaderForPartition, driver.Disconnected},
		{kerr.CoordinatorNotAvailable, driver.Disconnected},
		{kerr.IllegalGeneration, driver.Rejected},
		{errRevoked, driver.Rejected},
		{kgo.ErrClientClosed, driver.Closed},
		{driver.ErrClosed, driver.Closed},
		{context.Canceled, driver.Canceled},
		{context.DeadlineExceeded, driver.Timeout},
		{errors.ErrUnsupported, driver.Unsupported},
		{kgo.ErrRecordTimeout, driver.Timeout},
		{&abandoned{kgo.ErrRecordRetries, io.EOF}, driver.Disconnected},
		{&abandoned{kgo.ErrRecordTimeout, dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))}, driver.Disconnected},
		{&abandoned{kgo.ErrRecordRetries, os.ErrDeadlineExceeded}, driver.Timeout},
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), driver.Disconnected},
		{dial(&net.DNSError{Err: "no such host", IsNotFound: true}), driver.Disconnected},
		{x509.UnknownAuthorityError{}, driver.Denied},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, driver.Denied},
		{&refusedError{&kgo.ErrFirstReadEOF{}}, driver.Denied},
		{errors.New("what is this"), driver.Unknown},
	} {
		d, err := driver.Lookup("kafka")
		if err != nil {
			t.Fatal(err)
		}
		if got := d.KindOf(fmt.Errorf("wrapped: %w", c.err)); got != c.want {
			t.Errorf("%v: kind %s, want %s", c.err, got, c.want)
		}
	}
}
