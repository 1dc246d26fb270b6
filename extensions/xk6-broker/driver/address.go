package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Address is a broker's URL, understood: which driver, which servers, and the options that the query sets. Options of
// every scope may stand in the query, those of producers, consumers and topics are defaults for what the script makes.
type Address struct {
	Driver *Driver
	url    *url.URL
	hosts  []string
	given  map[string]any
}

// ParseURL understands a URL such as
//
//	nats://user:password@host1:4222,host2:4222?tlsCA=ca.pem
//
// together with the options given beside it, which win over those in the query. It does no I/O, and its errors hold no
// credentials.
func ParseURL(raw string, given map[string]any) (*Address, error) {
	single, hosts := splitHosts(raw)
	u, err := url.Parse(single)
	if err != nil {
		if parse := (*url.Error)(nil); errors.As(err, &parse) {
			err = parse.Err // the url.Error itself repeats the URL with its password
		}
		return nil, fmt.Errorf("the broker's URL is malformed: %w", err)
	}
	if u.Scheme == "" {
		return nil, errors.New(`the broker's URL has no scheme: it should look like "nats://127.0.0.1:4222" or "embedded:"`)
	}
	d, err := Lookup(u.Scheme)
	if err != nil {
		return nil, err
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("the query of the broker's URL is malformed")
	}
	a := &Address{Driver: d, url: u, hosts: hosts, given: map[string]any{}}
	u.RawQuery = ""
	for name, values := range query {
		a.given[name] = strings.Join(values, ",")
	}
	maps.Copy(a.given, given)
	if err := a.check(); err != nil {
		return nil, err
	}
	return a, nil
}

// check finds every mistake that can be known before anything is opened.
func (a *Address) check() error {
	if _, err := a.Profile(nil); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(a.given)) {
		if name == "profile" {
			continue
		}
		if _, ok := a.Driver.Option(name); !ok {
			return fmt.Errorf("%s has no option %q: known are profile, %s", a.Driver.Name, name, a.Driver.names(^Scope(0)))
		}
	}
	for _, scope := range []Scope{OnConnect, OnProducer, OnConsumer, OnTopic} {
		if _, err := a.Resolve(scope, nil); err != nil {
			return err
		}
	}
	return nil
}

// Profile is the profile that given names, else the URL, else [Latency].
func (a *Address) Profile(given map[string]any) (Profile, error) {
	for _, from := range []map[string]any{given, a.given} {
		if raw, ok := from["profile"]; ok {
			s, isString := raw.(string)
			if !isString {
				return "", fmt.Errorf("option \"profile\": %s is not one of latency, throughput, durable", Show(raw))
			}
			return ParseProfile(s)
		}
	}
	return Latency, nil
}

// Resolve gives every option of a scope its value: from given, else the URL, else the profile, else the driver's default.
func (a *Address) Resolve(scope Scope, given map[string]any) (Values, error) {
	profile, err := a.Profile(given)
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	for name, value := range a.given {
		if o, ok := a.Driver.Option(name); ok && o.Scope&scope != 0 {
			all[name] = value
		}
	}
	maps.Copy(all, given)
	delete(all, "profile")
	return a.Driver.Resolve(scope, profile, all)
}

// Open connects.
func (a *Address) Open(ctx context.Context, clientName string) (Conn, error) {
	values, err := a.Resolve(OnConnect, nil)
	if err != nil {
		return nil, err
	}
	conn, err := a.Driver.Open(ctx, Target{URL: a.url, Hosts: a.hosts, Options: values, ClientName: clientName})
	if err != nil {
		return nil, a.Driver.Wrap("connect to "+a.String(), err)
	}
	return conn, nil
}

// String is the URL without credentials and without its query.
func (a *Address) String() string {
	if a.url.Opaque != "" || a.url.Host == "" {
		return a.url.Scheme + ":" + a.url.Opaque + a.url.Path
	}
	return a.url.Scheme + "://" + strings.Join(a.hosts, ",") + a.url.Path
}

// splitHosts takes the list of hosts out of a URL, which net/url does not know of, and leaves the first.
func splitHosts(raw string) (single string, hosts []string) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return raw, nil
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	user := ""
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		user, authority = authority[:at+1], authority[at+1:]
	}
	hosts = strings.Split(authority, ",")
	return scheme + "://" + user + hosts[0] + tail, hosts
}
