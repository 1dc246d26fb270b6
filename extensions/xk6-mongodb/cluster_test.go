package mongodb

import (
	"context"
	"fmt"
	"testing"
)

// TestGivenUpByTheClient has the client end a connection itself while it asks a server what it is: nobody ended the test.
func TestGivenUpByTheClient(t *testing.T) {
	m := &monitor{}
	ctx, settled := m.connecting(t.Context(), 1)
	defer settled()
	m.fail("127.0.0.1:1[-1]", fmt.Errorf("connection(127.0.0.1:1[-1]) incomplete read of message header: %w", context.Canceled))
	if err := context.Cause(ctx); err != nil {
		t.Error(err)
	}
}
