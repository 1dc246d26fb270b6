package driver

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
)

func tlsOptions() []Option {
	return []Option{
		{
			Name: "tls", Scope: OnConnect, Type: Bool,
			Doc: "Use TLS; a scheme that ends in tls or ssl, amqps, and every other option of TLS, imply it.",
		},
		{Name: "tlsCA", Scope: OnConnect, Type: File, Doc: "A PEM file with the authorities to trust instead of the system's."},
		{Name: "tlsCert", Scope: OnConnect, Type: File, Doc: "A PEM file with the client's certificate."},
		{Name: "tlsKey", Scope: OnConnect, Type: File, Doc: "A PEM file with the key of the client's certificate."},
		{Name: "tlsServerName", Scope: OnConnect, Doc: "The name in the server's certificate, instead of the URL's host."},
		{Name: "tlsInsecure", Scope: OnConnect, Type: Bool, Doc: "Accept any certificate of the server."},
	}
}

// wantsTLS reports whether the scheme or an option asks for TLS.
func (t Target) wantsTLS() bool {
	for _, option := range []string{"tlsCA", "tlsCert", "tlsKey", "tlsServerName"} {
		if t.Options.String(option) != "" {
			return true
		}
	}
	scheme := t.URL.Scheme
	named := strings.HasSuffix(scheme, "tls") || strings.HasSuffix(scheme, "+ssl") || scheme == "amqps"
	return named || t.Options.Bool("tls") || t.Options.Bool("tlsInsecure")
}

// TLS returns the configuration of TLS; nil without TLS. Errors name the option.
func (t Target) TLS() (*tls.Config, error) {
	if !t.wantsTLS() {
		return nil, nil // no TLS is not an error
	}
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.Options.String("tlsServerName"),
		InsecureSkipVerify: t.Options.Bool("tlsInsecure"), //gosec:disable G402 -- only where the user asks for it by name
	}
	if t.Options.String("tlsCA") != "" {
		ca, err := t.File("tlsCA")
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM([]byte(ca)) {
			return nil, &OptionError{"tlsCA", errors.New("the file holds no certificate in PEM form")}
		}
	}
	var err error
	if c.Certificates, err = t.certificates(); err != nil {
		return nil, err
	}
	if n := t.Network.TLS; n != nil {
		c.InsecureSkipVerify = c.InsecureSkipVerify || n.InsecureSkipVerify
		c.MinVersion = cmp.Or(n.MinVersion, c.MinVersion)
		c.MaxVersion, c.CipherSuites = n.MaxVersion, n.CipherSuites
		if c.Certificates == nil {
			c.Certificates = n.Certificates
		}
	}
	return c, nil
}

// certificates returns the client's certificate of the options; nil if there is none.
func (t Target) certificates() ([]tls.Certificate, error) {
	cert, err := t.File("tlsCert")
	if err != nil {
		return nil, err
	}
	key, err := t.File("tlsKey")
	if err != nil {
		return nil, err
	}
	if cert == "" && key == "" {
		return nil, nil
	}
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		return nil, &OptionError{"tlsCert", fmt.Errorf("with tlsKey: %w", err)}
	}
	return []tls.Certificate{pair}, nil
}
