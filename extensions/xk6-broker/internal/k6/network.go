package k6

import (
	"context"
	"net"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// networkOf returns the dialer and the TLS of a VU, if k6's options set them. A driver whose client
// library dials by itself refuses a dialer.
func networkOf(state *lib.State) *driver.Network {
	n := &driver.Network{}
	o := state.Options
	dns := o.DNS.TTL.Valid || o.DNS.Select.Valid || o.DNS.Policy.Valid
	if dns || o.Hosts.Valid || o.BlockedHostnames.Valid || o.LocalIPs.Valid || len(o.BlacklistIPs) > 0 {
		n.Dial = dialThrough(state.Dialer)
	}
	if o.InsecureSkipTLSVerify.Bool || len(o.TLSAuth) > 0 || o.TLSVersion != nil || o.TLSCipherSuites != nil {
		n.TLS = state.TLSConfig
	}
	return n
}

// dialThrough dials by k6's dialer, without k6's byte counters, which are for its own protocols.
func dialThrough(dialer lib.DialContexter) driver.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if counted, ok := c.(*netext.Conn); ok {
			c = counted.Conn
		}
		return c, err
	}
}
