package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// dialer makes connections, with TLS where it is asked for.
func dialer(t driver.Target) (func(ctx context.Context, network, address string) (net.Conn, error), error) {
	v := t.Options
	plain := net.Dialer{Timeout: v.Duration("connectTimeout")}
	dial := plain.DialContext
	config, err := t.TLS()
	if err != nil {
		return nil, err
	}
	if config != nil {
		dial = (&tls.Dialer{NetDialer: &plain, Config: config}).DialContext
	}
	if !v.Bool("ignoreAdvertised") {
		return dial, nil
	}
	if len(t.Hosts) != 1 {
		return nil, errors.New("ignoreAdvertised needs a URL with one host")
	}
	only := t.Hosts[0]
	if _, _, err := net.SplitHostPort(only); err != nil {
		only = net.JoinHostPort(strings.Trim(only, "[]"), "9092")
	}
	return func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, only) }, nil
}

// saslMechanism is nil where there is nothing to authenticate with.
func saslMechanism(u *url.URL, v driver.Values) (sasl.Mechanism, error) {
	user, password := v.String("username"), v.String("password")
	if user == "" {
		user = u.User.Username()
	}
	if password == "" {
		password, _ = u.User.Password()
	}
	token, tokenFile := v.String("token"), v.String("tokenFile")
	kind := v.String("sasl")
	if kind == "auto" {
		switch {
		case token != "" || tokenFile != "":
			kind = "oauthbearer"
		case user != "":
			kind = "plain"
		default:
			kind = "none"
		}
	}
	if kind == "none" {
		return nil, nil // no mechanism is a good answer
	}
	if kind == "oauthbearer" {
		if token == "" && tokenFile == "" {
			return nil, errors.New("sasl oauthbearer needs the option token or tokenFile")
		}
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			if token != "" {
				return oauth.Auth{Token: token}, nil
			}
			b, err := os.ReadFile(tokenFile)
			if err != nil {
				return oauth.Auth{}, fmt.Errorf("tokenFile: %w", err)
			}
			return oauth.Auth{Token: strings.TrimSpace(string(b))}, nil
		}), nil
	}
	if user == "" || password == "" {
		return nil, fmt.Errorf("sasl %s needs a user and a password, in the URL or as the options username and password", kind)
	}
	switch kind {
	case "plain":
		return plain.Auth{User: user, Pass: password}.AsMechanism(), nil
	case "scram-sha-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism(), nil
	default:
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism(), nil
	}
}

// refusing makes the errors of a SASL mechanism tell what they are.
type refusing struct{ sasl.Mechanism }

func (m refusing) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	session, first, err := m.Mechanism.Authenticate(ctx, host)
	if err != nil {
		return nil, nil, &refusedError{err}
	}
	return refusingSession{session}, first, nil
}

type refusingSession struct{ sasl.Session }

func (s refusingSession) Challenge(answer []byte) (bool, []byte, error) {
	done, next, err := s.Session.Challenge(answer)
	if err != nil {
		err = &refusedError{err}
	}
	return done, next, err
}

// refusedError is an authentication that failed in the course of a mechanism, or for want of one.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return "authentication: " + e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }
