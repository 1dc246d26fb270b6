package driver

import (
	"crypto/tls"
	"net"
)

// Network is how connections are opened, and what holds of TLS beside a target's own options. The
// zero value is the machine's own network.
type Network struct {
	// Dial resolves an address and opens a connection without TLS; nil is [net.Dialer]'s.
	Dial Dial
	// TLS has the client's certificates, InsecureSkipVerify, versions and cipher suites for targets
	// that speak TLS and do not set them; nil has none.
	TLS *tls.Config
}

// Plain opens connections without TLS. All that a driver dials goes through it or [Target.Dialer],
// unless [Driver.OwnDialer].
func (t Target) Plain() Dial {
	if t.Network.Dial != nil {
		return t.Network.Dial
	}
	return (&net.Dialer{}).DialContext
}

// beside adds to a target's configuration of TLS what it does not set.
func (n Network) beside(c *tls.Config) {
	if n.TLS == nil {
		return
	}
	c.InsecureSkipVerify = c.InsecureSkipVerify || n.TLS.InsecureSkipVerify
	c.MaxVersion, c.CipherSuites = n.TLS.MaxVersion, n.TLS.CipherSuites
	if n.TLS.MinVersion != 0 {
		c.MinVersion = n.TLS.MinVersion
	}
	if all := n.TLS.Certificates; c.GetClientCertificate == nil && len(all) > 0 {
		c.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			for i := range all {
				if asked.SupportsCertificate(&all[i]) == nil {
					return &all[i], nil
				}
			}
			return &all[0], nil // the server may take it without having named its authority
		}
	}
}
