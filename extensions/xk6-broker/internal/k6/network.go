package k6

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// networkOf returns the dialer and the TLS of a VU, if k6's options set them.
func networkOf(state *lib.State) *driver.Network {
	n := &driver.Network{}
	if len(dialed(state.Options)) > 0 {
		n.Dial = dialThrough(state.Dialer)
	}
	if o := state.Options; o.InsecureSkipTLSVerify.Bool || len(o.TLSAuth) > 0 || o.TLSVersion != nil ||
		o.TLSCipherSuites != nil {
		n.TLS = state.TLSConfig
	}
	return n
}

// dialed lists k6's options for dialing that are set.
func dialed(o lib.Options) (names []string) {
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"hosts", o.Hosts.Valid},
		{"blacklistIPs", len(o.BlacklistIPs) > 0},
		{"blockHostnames", o.BlockedHostnames.Valid},
		{"dns", o.DNS.TTL.Valid || o.DNS.Select.Valid || o.DNS.Policy.Valid},
		{"localIPs", o.LocalIPs.Valid},
	} {
		if option.set {
			names = append(names, option.name)
		}
	}
	return names
}

// dialThrough dials by k6's dialer, without k6's byte counters, which are for its own protocols.
func dialThrough(dialer lib.DialContexter) driver.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		switch {
		case errors.As(err, new(netext.BlackListedIPError)):
			return nil, &driver.OptionError{Name: "blacklistIPs", Err: err}
		case errors.As(err, new(netext.BlockedHostError)):
			return nil, &driver.OptionError{Name: "blockHostnames", Err: err}
		}
		if counted, ok := c.(*netext.Conn); ok {
			c = counted.Conn
		}
		return c, err
	}
}

// dialers are the drivers of the test whose client libraries dial by themselves.
type dialers struct {
	mu  sync.Mutex
	own []string
}

func (d *dialers) add(client *driver.Driver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if client.OwnDialer && !slices.Contains(d.own, client.Name) {
		d.own = append(d.own, client.Name)
	}
}

// refuse returns an error if k6's options cannot hold for the test's drivers.
func (d *dialers) refuse(o lib.Options) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if names := dialed(o); len(names) > 0 && len(d.own) > 0 {
		return fmt.Errorf(
			"k6's options %s do not hold for %s: its client library dials by itself; leave them out, or use another driver",
			strings.Join(names, ", "),
			strings.Join(d.own, ", "),
		)
	}
	return nil
}
