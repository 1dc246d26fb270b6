package mongodb

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// configure returns the client's options. The client's retries are off, so that nothing is sent
// twice.
func configure(t driver.Target) (*options.ClientOptions, error) {
	secure, err := t.TLS()
	if err != nil {
		return nil, err
	}
	within := t.Options.Duration("connectTimeout")
	o := options.Client().
		SetHosts(t.Addresses("27017")).
		SetConnectTimeout(within).
		SetServerSelectionTimeout(within).
		SetTimeout(t.Options.Duration("timeout")).
		SetRetryWrites(false).SetRetryReads(false).
		SetMaxPoolSize(0). // what needs connections is bounded by the options inFlight
		SetMaxConnecting(8).
		SetAppName(fmt.Sprintf("%.128s", cmp.Or(t.ClientName, "xk6-broker")))
	if t.Network.Dial != nil {
		o.SetDialer(dialer(t.Network.Dial))
	}
	if secure != nil {
		o.SetTLSConfig(secure)
	}
	if set := t.Options.String("replicaSet"); set != "" {
		o.SetReplicaSet(set)
	}
	if t.Options.Bool("directConnection") {
		if len(t.Hosts) > 1 {
			return nil, &driver.OptionError{
				Name: "directConnection",
				Err:  fmt.Errorf("the URL names %d hosts, and it is of one", len(t.Hosts)),
			}
		}
		o.SetDirect(true)
	}
	if err := authenticate(o, t); err != nil {
		return nil, err
	}
	return o, o.Validate()
}

// dialer is a function that the client takes.
type dialer driver.Dial

// DialContext implements the client's interface.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

const x509 = "MONGODB-X509"

// authenticate sets the credentials, if there are any.
func authenticate(o *options.ClientOptions, t driver.Target) error {
	user, password := t.Login()
	mechanism := t.Options.String("authMechanism")
	if mechanism == "auto" {
		mechanism = ""
	}
	if user == "" && mechanism == "" {
		return nil
	}
	as := options.Credential{AuthMechanism: mechanism, Username: user, Password: password, PasswordSet: password != ""}
	switch {
	case mechanism == x509:
		as.Password, as.PasswordSet = "", false
		if t.Options.String("tlsCert") == "" {
			return &driver.OptionError{
				Name: "authMechanism",
				Err:  fmt.Errorf("%s is by the certificate of the option \"tlsCert\", and there is none", x509),
			}
		}
	case mechanism == "PLAIN":
		as.AuthSource = cmp.Or(t.Options.String("authSource"), "$external")
	default:
		as.AuthSource = cmp.Or(t.Options.String("authSource"), strings.Trim(t.URL.Path, "/"), "admin")
	}
	if user == "" && mechanism != x509 {
		return &driver.OptionError{
			Name: "authMechanism",
			Err:  fmt.Errorf("%s needs a user, and the URL and the option \"user\" name none", mechanism),
		}
	}
	if password == "" && mechanism != x509 {
		return &driver.OptionError{Name: "password", Err: fmt.Errorf("user %q needs one, in the URL or in this option", user)}
	}
	o.SetAuth(as)
	return nil
}
