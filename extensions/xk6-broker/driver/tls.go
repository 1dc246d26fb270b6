package driver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
)

func tlsOptions() []Option {
	return []Option{
		{
			Name: "tls", Scope: OnConnect, Type: Bool,
			Doc: "Use TLS; a scheme that ends in tls or ssl, amqps, and every other option of TLS, imply it.",
		},
		{
			Name: "tlsCA", Scope: OnConnect, Type: File,
			Doc: "A PEM file with the authorities to trust, instead of the system's.",
		},
		{
			Name: "tlsCert", Scope: OnConnect, Type: File,
			Doc: "A PEM file with the client's certificate, for servers that ask for one.",
		},
		{
			Name: "tlsKey", Scope: OnConnect, Type: File,
			Doc: "A PEM file with the key of the client's certificate.",
		},
		{
			Name: "tlsServerName", Scope: OnConnect,
			Doc: "The name that the server's certificate must bear, instead of the URL's host.",
		},
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
	certificates, err := t.certificates()
	if err != nil {
		return nil, err
	}
	if n := t.Network.TLS; n != nil {
		c.InsecureSkipVerify = c.InsecureSkipVerify || n.InsecureSkipVerify
		if n.MinVersion != 0 {
			c.MinVersion = n.MinVersion
		}
		c.MaxVersion, c.CipherSuites = n.MaxVersion, n.CipherSuites
		if certificates == nil {
			certificates = n.Certificates
		}
	}
	if len(certificates) > 0 {
		c.GetClientCertificate = choose(certificates)
	}
	return c, nil
}

// certificates returns the client's certificate of the options; nil if there is none.
func (t Target) certificates() ([]tls.Certificate, error) {
	hasCert, hasKey := t.Options.String("tlsCert") != "", t.Options.String("tlsKey") != ""
	if !hasCert && !hasKey {
		return nil, nil
	}
	if !hasCert || !hasKey {
		return nil, &OptionError{"tlsCert", errors.New("it and tlsKey need each other")}
	}
	cert, err := t.File("tlsCert")
	if err != nil {
		return nil, err
	}
	key, err := t.File("tlsKey")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		return nil, &OptionError{"tlsCert", err}
	}
	return []tls.Certificate{pair}, nil
}

// choose returns the first certificate that the server supports, else the first. With
// [tls.Config.Certificates] the client would send none if the server does not name its authority.
func choose(all []tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		for i := range all {
			if asked.SupportsCertificate(&all[i]) == nil {
				return &all[i], nil
			}
		}
		return &all[0], nil
	}
}
