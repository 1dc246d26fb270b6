package mongodb

import (
	"context"
	"fmt"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// TestGivenUpByTheClient has the client end a connection itself while it asks a server what it is: nobody ended the test.
func TestGivenUpByTheClient(t *testing.T) {
	d, err := driver.Lookup("mongodb")
	if err != nil {
		t.Fatal(err)
	}
	for reads, want := range map[string]driver.Kind{"length of read message too large": driver.Unsupported, "incomplete read of message header": ""} {
		m := &monitor{}
		ctx, settled := m.connecting(t.Context(), 1)
		m.fail("127.0.0.1:1[-1]", fmt.Errorf("connection(127.0.0.1:1[-1]) %s: %w", reads, context.Canceled))
		if err := context.Cause(ctx); d.KindOf(err) != want {
			t.Errorf("%s: kind %q: %v, want %q", reads, d.KindOf(err), err, want)
		}
		settled()
	}
}
