package driver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
)

// TLSOptions are the options that every driver with TLS has.
func TLSOptions() []Option {
	return []Option{
		{Name: "tls", Scope: OnConnect, Type: Bool, Doc: "Use TLS; a scheme that ends in tls, and every other option of TLS, imply it."},
		{Name: "tlsCA", Scope: OnConnect, Doc: "A PEM file with the authorities to trust, instead of the system's."},
		{Name: "tlsCert", Scope: OnConnect, Doc: "A PEM file with the client's certificate, for servers that ask for one."},
		{Name: "tlsKey", Scope: OnConnect, Doc: "A PEM file with the key of the client's certificate."},
		{Name: "tlsServerName", Scope: OnConnect, Doc: "The name that the server's certificate must bear, instead of the URL's host."},
		{Name: "tlsInsecure", Scope: OnConnect, Type: Bool, Doc: "Accept any certificate of the server."},
	}
}

// TLS is what the options of [TLSOptions] and the scheme ask for; nil where they do not ask for TLS. Its errors name the option.
func (t Target) TLS() (*tls.Config, error) {
	o := t.Options
	ca, cert, key, name := o.String("tlsCA"), o.String("tlsCert"), o.String("tlsKey"), o.String("tlsServerName")
	wanted := o.Bool("tls") || o.Bool("tlsInsecure") || strings.HasSuffix(t.URL.Scheme, "tls") || ca+cert+key+name != ""
	if !wanted {
		return nil, nil // no TLS is not an error
	}
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         name,
		InsecureSkipVerify: o.Bool("tlsInsecure"), // only where the user asks for it by name
	}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, &OptionError{"tlsCA", err}
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &OptionError{"tlsCA", fmt.Errorf("%s holds no certificate in PEM form", ca)}
		}
	}
	if (cert == "") != (key == "") {
		return nil, &OptionError{"tlsCert", errors.New("it and tlsKey need each other")}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, &OptionError{"tlsCert", err}
		}
		// The field Certificates would be passed over, without a word, where the server does not name their authority.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return c, nil
}
