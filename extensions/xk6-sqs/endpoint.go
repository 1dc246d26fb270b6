package sqs

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// endpoint is the server and the settings of its clients.
type endpoint struct {
	config aws.Config
	base   string // the server's URL; empty where the region decides, or AWS's environment
	amazon bool   // it is Amazon's own service
	secure bool   // the dialer speaks TLS
	dial   driver.Dial
}

// amazons are the hosts of Amazon's own service.
var amazons = regexp.MustCompile(`(?i)\.(amazonaws\.com(\.cn)?|api\.aws|api\.amazonwebservices\.com\.cn)(:\d+)?$`)

var errRegion = &driver.OptionError{Name: "region", Err: errors.New(
	"there is none, nor in the environment (AWS_REGION) or AWS's configuration files; it should be one such as eu-central-1",
)}

// newEndpoint reads settings that the URL does not set as AWS's own programs do: environment,
// files, the machine's role.
func newEndpoint(ctx context.Context, t driver.Target) (*endpoint, error) {
	secure, err := t.TLS()
	if err != nil {
		return nil, err
	}
	e := &endpoint{secure: secure != nil}
	if e.dial, err = t.Dialer(); err != nil {
		return nil, err
	}
	load := []func(*config.LoadOptions) error{config.WithRegion(t.Options.String("region"))}
	if key, secret := t.Login(); key != "" || secret != "" {
		load = append(
			load,
			config.WithCredentialsProvider(
				credentials.NewStaticCredentialsProvider(key, secret, t.Options.String("sessionToken")),
			),
		)
	}
	within, cancel := context.WithTimeout(ctx, t.Options.Duration("connectTimeout"))
	defer cancel()
	if e.config, err = config.LoadDefaultConfig(within, load...); err != nil {
		return nil, err
	}
	e.config.Credentials = named{e.config.Credentials}
	if t.URL.Host != "" {
		scheme := "http://"
		if e.secure {
			scheme = "https://"
		}
		port := "80"
		if e.secure {
			port = "443"
		}
		host := t.Addresses(port)[0]
		e.base, e.amazon = scheme+host, amazons.MatchString(host)
		e.config.Region = cmp.Or(e.config.Region, "us-east-1") // a server of one's own has none, and the signature needs one
	} else {
		e.base = aws.ToString(e.config.BaseEndpoint)
		e.amazon = e.base == "" || amazons.MatchString(e.base)
	}
	if e.config.Region == "" {
		return nil, errRegion
	}
	return e, nil
}

func (e *endpoint) String() string { return cmp.Or(e.base, "the endpoint of "+e.config.Region) }

// client is one of the client library's with connections of its own.
type client struct {
	*sqs.Client
	transport *http.Transport
}

// client returns a client with as many connections as concurrent requests. It does not retry: a
// send whose answer was lost would be stored twice.
func (e *endpoint) client(requests int) *client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: requests, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
	}
	if e.secure {
		t.DialTLSContext = e.dial
	} else {
		t.DialContext = e.dial
	}
	return &client{transport: t, Client: sqs.NewFromConfig(e.config, func(o *sqs.Options) {
		o.HTTPClient = &sender{http.Client{Transport: t}}
		o.Retryer = aws.NopRetryer{}
		o.Logger = logging.Nop{}                  // its errors say all that it would log
		o.DisableMessageChecksumValidation = true // a batch would fail for one; the stamp is checked anyway
		if e.base != "" {
			o.BaseEndpoint = aws.String(e.base)
		}
	})}
}

func (c *client) hangUp() { c.transport.CloseIdleConnections() }

// named marks errors about credentials.
type named struct{ aws.CredentialsProvider }

// credentialsError reports that there are no credentials to sign with.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string {
	return "no credentials in the URL (sqs://accessKey:secretKey@host), nor where AWS's own programs look: " + e.err.Error()
}

func (e *credentialsError) Unwrap() error { return e.err }

// Retrieve returns the credentials.
func (n named) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := n.CredentialsProvider.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		err = &credentialsError{err}
	}
	return c, err
}
