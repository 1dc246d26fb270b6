package pulsar

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// credentials are the login of connections and of the admin API.
type credentials struct {
	client pulsar.Authentication // nil without a login
	sign   func(*http.Request) error
}

func credentialsOf(t driver.Target) (credentials, error) {
	token, file := t.Options.String("token"), t.Options.String("tokenFile")
	user, password := t.Login()
	switch {
	case token != "" || file != "":
		read := func() (string, error) {
			if token != "" {
				return token, nil
			}
			text, err := t.File("tokenFile")
			return strings.TrimSpace(text), err
		}
		if _, err := read(); err != nil {
			return credentials{}, err
		}
		return credentials{pulsar.NewAuthenticationTokenFromSupplier(read), func(r *http.Request) error {
			token, err := read()
			r.Header.Set("Authorization", "Bearer "+token)
			return err
		}}, nil
	case user != "":
		if password == "" {
			return credentials{}, fmt.Errorf("user %q needs a password, in the URL or as the option password", user)
		}
		basic, err := pulsar.NewAuthenticationBasic(user, password)
		return credentials{basic, func(r *http.Request) error { r.SetBasicAuth(user, password); return nil }}, err
	}
	none := credentials{sign: func(*http.Request) error { return nil }}
	if t.Options.String("tlsCert") != "" { // the connection's certificate is the login
		none.client = pulsar.NewAuthenticationFromTLSCertSupplier(func() (*tls.Certificate, error) {
			config, err := t.TLS()
			if err != nil {
				return nil, err
			}
			return config.GetClientCertificate(nil)
		})
	}
	return none, nil
}

// adminURL returns the URL of the admin API.
func adminURL(t driver.Target, secure bool) string {
	scheme, port := "http", "8080"
	if secure {
		scheme, port = "https", "8443"
	}
	host := "127.0.0.1"
	if t.URL.Hostname() != "" {
		host = t.URL.Hostname()
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return strings.TrimSuffix(cmp.Or(t.Options.String("adminUrl"), scheme+"://"+host+":"+port), "/")
}
