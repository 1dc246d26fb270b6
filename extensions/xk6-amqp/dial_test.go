package amqp

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A server that accepts connections and says nothing is given up after connectTimeout.
func TestADeafServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	a, err := driver.ParseURL("rabbitmq://"+l.Addr().String()+"?connectTimeout=100ms", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Open(t.Context(), "")
	var failed *driver.Error
	if !errors.As(err, &failed) || failed.Kind != driver.Timeout || !strings.Contains(err.Error(), "no answer from "+l.Addr().String()+" within 100ms") {
		t.Error(err)
	}
}
