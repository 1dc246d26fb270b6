package driver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
)

func tlsOptions() []Option {
	return []Option{
		{Name: "tls", Scope: OnConnect, Type: Bool, Doc: "Use TLS; a scheme that ends in tls or ssl, amqps, and every other option of TLS, imply it."},
		{Name: "tlsCA", Scope: OnConnect, Type: File, Doc: "A PEM file with the authorities to trust, instead of the system's."},
		{Name: "tlsCert", Scope: OnConnect, Type: File, Doc: "A PEM file with the client's certificate, for servers that ask for one."},
		{Name: "tlsKey", Scope: OnConnect, Type: File, Doc: "A PEM file with the key of the client's certificate."},
		{Name: "tlsServerName", Scope: OnConnect, Doc: "The name that the server's certificate must bear, instead of the URL's host."},
		{Name: "tlsInsecure", Scope: OnConnect, Type: Bool, Doc: "Accept any certificate of the server."},
	}
}

// TLS is what the options of [ConnectOptions] and the scheme ask for; nil where they do not ask for
// TLS. Its errors name the option.
func (t Target) TLS() (*tls.Config, error) {
	o := t.Options
	ca, cert, key, name := o.String("tlsCA"), o.String("tlsCert"), o.String("tlsKey"), o.String("tlsServerName")
	named := strings.HasSuffix(t.URL.Scheme, "tls") || strings.HasSuffix(t.URL.Scheme, "+ssl") || t.URL.Scheme == "amqps"
	wanted := named || o.Bool("tls") || o.Bool("tlsInsecure") || ca+cert+key+name != ""
	if !wanted {
		return nil, nil // no TLS is not an error
	}
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         name,
		InsecureSkipVerify: o.Bool("tlsInsecure"), //gosec:disable G402 -- only where the user asks for it by name
	}
	if ca != "" {
		pem, err := t.File("tlsCA")
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM([]byte(pem)) {
			return nil, &OptionError{"tlsCA", errors.New("the file holds no certificate in PEM form")}
		}
	}
	if (cert == "") != (key == "") {
		return nil, &OptionError{"tlsCert", errors.New("it and tlsKey need each other")}
	}
	if cert != "" {
		pair, err := t.keyPair()
		if err != nil {
			return nil, err
		}
		// The field Certificates would be passed over, without a word, where the server does not
		// name their authority.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	t.Network.beside(c)
	return c, nil
}

func (t Target) keyPair() (pair tls.Certificate, err error) {
	cert, err := t.File("tlsCert")
	if err != nil {
		return pair, err
	}
	key, err := t.File("tlsKey")
	if err != nil {
		return pair, err
	}
	if pair, err = tls.X509KeyPair([]byte(cert), []byte(key)); err != nil {
		err = &OptionError{"tlsCert", err}
	}
	return pair, err
}

// mismatch adds to a connection's failure that only one of both sides speaks TLS, where that is so:
// neither says so by itself.
func (t Target) mismatch(ctx context.Context, err error, kind Kind) error {
	secure, invalid := t.TLS()
	switch {
	case invalid != nil:
	case secure != nil && errors.As(err, new(tls.RecordHeaderError)):
		return &ProtocolError{"TLS", err}
	case secure != nil && kind == Timeout:
		return fmt.Errorf("%w: does the server speak TLS at this port?", err)
	case secure == nil && kind != Timeout && t.wantsTLS(ctx):
		return &ProtocolError{t.protocol.Name, fmt.Errorf("%s: %w", setTLS, err)}
	}
	return err
}

const setTLS = `it speaks TLS and hangs up on who does not, so set option "tls"`

// wantsTLS reports whether a server speaks nothing but TLS: there are those that find out what a
// client speaks, as RocketMQ's proxy, and may just be slow.
func (t Target) wantsTLS(ctx context.Context) bool {
	if !t.speaksTLS(ctx) {
		return false
	}
	said, err := answer(ctx, t.Plain(), t.Hosts[0])
	if len(said) > 0 {
		return said[0] == tlsAlert
	}
	return err != nil && ctx.Err() == nil
}

// tlsAlert is how the records of TLS begin that say what is wrong.
const tlsAlert = 21

func (t Target) speaksTLS(ctx context.Context) bool {
	// Nothing is sent to whoever answers; it is only asked what it speaks.
	anyServer := &tls.Config{InsecureSkipVerify: true} //gosec:disable G402 -- nothing is sent to whoever answers
	c, err := over(t.Plain(), anyServer)(ctx, "tcp", t.Hosts[0])
	if err == nil {
		_ = c.Close()
	}
	var op *net.OpError
	return err == nil || errors.As(err, &op) && op.Op == "remote error" // an alert
}
