package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// dialer connects to the addresses that the cluster advertises or, with ignoreAdvertised, to the
// URL's host.
func dialer(t driver.Target) (driver.Dial, error) {
	dial, err := t.Dialer()
	if err != nil || !t.Options.Bool("ignoreAdvertised") {
		return dial, err
	}
	if len(t.Hosts) != 1 {
		return nil, errors.New("ignoreAdvertised needs a URL with one host")
	}
	only := t.Addresses(port)[0]
	return func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, only) }, nil
}

const port = "9092" // of a host without one

// saslMechanism returns nil if there are no credentials.
func saslMechanism(t driver.Target) (sasl.Mechanism, error) {
	v := t.Options
	user, password := t.Login()
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
		return nil, nil // no mechanism is a valid result
	}
	if kind == "oauthbearer" {
		if token == "" && tokenFile == "" {
			return nil, errors.New("sasl oauthbearer needs the option token or tokenFile")
		}
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			if token != "" {
				return oauth.Auth{Token: token}, nil
			}
			text, err := t.File("tokenFile")
			return oauth.Auth{Token: strings.TrimSpace(text)}, err
		}), nil
	}
	if user == "" || password == "" {
		return nil, fmt.Errorf(
			"sasl %s needs a user and a password, in the URL or as the options user and password", kind,
		)
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

// refusing marks the errors of a SASL mechanism as refusals.
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

// refusedError is a failed authentication, or the lack of one.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return "authentication: " + e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }
