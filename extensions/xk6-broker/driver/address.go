package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Address is a parsed URL of a broker: the driver, the servers, and the options in the query.
// Options of producers, consumers and topics are defaults for those that the script makes.
type Address struct {
	Driver *Driver
	url    *url.URL
	hosts  []string
	given  map[string]any
}

// errMalformed does not quote the URL, because an unescaped character in a password moves the rest
// of the password into the port, the path or the query.
var errMalformed = errors.New(`the broker's URL is malformed: it should look like ` +
	`"nats://user:password@host1:4222,host2:4222?option=value", with IPv6 addresses in brackets, ` +
	`and special characters escaped: %2F is /, %23 is #, %3F is ?, %40 is @, %25 is %, %26 is &, %3B is ;, %2B is +`)

// ParseURL parses a URL such as
//
//	nats://user:password@host1:4222,host2:4222?tlsCA=ca.pem
//
// Options in given override those in the query. It does no I/O, and its errors have no credentials.
func ParseURL(raw string, given map[string]any) (*Address, error) {
	single, hosts, behind := splitHosts(raw)
	u, err := url.Parse(single)
	if err != nil || strings.ContainsAny(behind, "@#") {
		return nil, errMalformed
	}
	if u.Scheme == "" {
		return nil, fmt.Errorf("no scheme: %w", errMalformed)
	}
	d, err := Lookup(u.Scheme)
	if err != nil {
		return nil, err
	}
	if u.Opaque != "" { // the slashes are missing
		return nil, errMalformed
	}
	for i, host := range hosts {
		if !hostForm.MatchString(host) && (host != "" || len(hosts) > 1) {
			return nil, fmt.Errorf("host %d: %w", i+1, errMalformed)
		}
	}
	if d.OneHost && len(hosts) > 1 {
		return nil, fmt.Errorf("the broker's URL names %d hosts, and %s takes one", len(hosts), d.Name)
	}
	a := &Address{Driver: d, url: u, hosts: hosts}
	if a.given, err = d.parseQuery(u.RawQuery); err != nil {
		return nil, err
	}
	u.RawQuery = ""
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, err := d.find(name, profile.Scope, ""); err != nil {
			return nil, err
		}
		a.given[name] = given[name]
	}
	for _, scope := range []Scope{OnConnect, OnProducer, OnConsumer, OnTopic} {
		if _, err := a.Resolve(scope, nil); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// splitHosts returns the URL with the first host only, all hosts, and the text behind them. Without
// "://" all of it is behind.
func splitHosts(raw string) (single string, hosts []string, behind string) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return raw, nil, raw
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority, behind = rest[:end], rest[end:]
	}
	user := ""
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		user, authority = authority[:at+1], authority[at+1:]
	}
	hosts = strings.Split(authority, ",")
	return scheme + "://" + user + hosts[0] + behind, hosts, behind
}

// hostForm is host, host:port, [IPv6] or [IPv6]:port.
var hostForm = regexp.MustCompile(`^([^\s:/\[\]]+|\[[0-9a-fA-F:.]+(%\w+)?\])(:[1-9][0-9]{0,4})?$`)

// parseQuery returns the options in a URL's query. The name of an unknown option behind a secret is
// not quoted, because it may be a part of the secret.
func (d *Driver) parseQuery(query string) (map[string]any, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errMalformed
	}
	given := map[string]any{}
	secret := false
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		name, _, _ := strings.Cut(part, "=")
		name, _ = url.QueryUnescape(name) // ParseQuery has checked it
		o, err := d.find(name, profile.Scope, InURL)
		switch {
		case err != nil && secret:
			return nil, errMalformed
		case err != nil:
			return nil, err
		case o.Type == Map:
			given[name] = values[name]
		case len(values[name]) > 1 && o.Type != List:
			return nil, fmt.Errorf("option %q: it is given %d times in the URL", name, len(values[name]))
		default:
			given[name] = strings.Join(values[name], ",")
		}
		secret = secret || o.Secret
	}
	return given, nil
}

// Profile returns the profile in given, else that of the URL, else [Latency].
func (a *Address) Profile(given map[string]any) (Profile, error) {
	for _, options := range []map[string]any{given, a.given} {
		if raw, ok := options[profile.Name]; ok {
			value, err := profile.Parse(raw)
			name, _ := value.(string)
			return Profile(name), err
		}
	}
	return Latency, nil
}

// Resolve returns a value for every option of a scope: from given, else the URL, else the profile,
// else the driver's default.
func (a *Address) Resolve(scope Scope, given map[string]any) (Values, error) {
	p, err := a.Profile(given)
	if err != nil {
		return nil, err
	}
	return a.Driver.Resolve(scope, p, a.Asked(scope, given))
}

// Asked returns the options of a scope that the URL or given sets, without the profile.
func (a *Address) Asked(scope Scope, given map[string]any) map[string]any {
	all := map[string]any{}
	for name, value := range a.given {
		if _, err := a.Driver.find(name, scope, ""); err == nil {
			all[name] = value
		}
	}
	maps.Copy(all, given)
	delete(all, profile.Name)
	return all
}

// Open connects.
func (a *Address) Open(ctx context.Context, clientName string) (Conn, error) {
	return a.OpenThrough(ctx, nil, clientName)
}

// OpenThrough connects through a network. Nil is the machine's own.
func (a *Address) OpenThrough(ctx context.Context, network *Network, clientName string) (Conn, error) {
	op := "connect to " + a.String()
	target := Target{URL: a.url, Hosts: a.hosts, ClientName: clientName}
	if network != nil {
		target.Network = *network
	}
	if target.Network.Dial != nil && a.Driver.OwnDialer {
		err := fmt.Errorf("a dialer of its own, because the client library dials: %w", errors.ErrUnsupported)
		return nil, a.Driver.Wrap(op, err)
	}
	var err error
	if target.Options, err = a.Resolve(OnConnect, nil); err != nil {
		return nil, err
	}
	conn, err := a.Driver.Open(ctx, target)
	if err != nil {
		return nil, a.Driver.Wrap(op, err)
	}
	return conn, nil
}

// String returns the URL without credentials and query.
func (a *Address) String() string {
	if a.url.Host == "" {
		return a.url.Scheme + ":" + a.url.Path
	}
	return a.url.Scheme + "://" + strings.Join(a.hosts, ",") + a.url.Path
}
