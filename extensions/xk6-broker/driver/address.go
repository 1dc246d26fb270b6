package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Address is a broker's URL, understood: which driver, which servers, and the options that the
// query sets. Options of every scope may stand in the query, those of producers, consumers and
// topics are defaults for what the script makes.
type Address struct {
	Driver *Driver
	url    *url.URL
	hosts  []string
	given  map[string]any
	files  map[string]file // by their names in given, once ReadFiles has read them
}

// Errors about a URL quote nothing of it. Its parts are in doubt: an unescaped character in a
// password makes a port, a path, a query or an option of what follows it.
var (
	errMalformed = errors.New(`the broker's URL is malformed: it should look like "nats://user:password@host1:4222,host2:4222?option=value", ` +
		"and in the user and the password what is neither letter nor digit as %2F for /, %23 for #, %3F for ?, %40 for @, %25 for %")
	errBehindHost = errors.New("the broker's URL is malformed: behind the host there is a # or an @. Where they are part of the path or " +
		"of a value, write %23 and %40; where the password has come to stand there, write %2F for / and %3F for ? in it, too")
	errQuery = errors.New("the query of the broker's URL is malformed: it should look like ?option=value&option=value, " +
		"and in a value %26 stands for &, %3B for ;, %2B for +, %25 for %")
)

// ParseURL understands a URL such as
//
//	nats://user:password@host1:4222,host2:4222?tlsCA=ca.pem
//
// together with the options given beside it, which win over those in the query. It does no I/O, and
// its errors hold no credentials.
func ParseURL(raw string, given map[string]any) (*Address, error) {
	single, hosts, behind := splitHosts(raw)
	if strings.ContainsAny(behind, "@#") {
		return nil, errBehindHost
	}
	u, err := url.Parse(single)
	if err != nil {
		return nil, errMalformed
	}
	if u.Scheme == "" {
		return nil, errors.New(`the broker's URL has no scheme: it should look like "nats://127.0.0.1:4222" or "embedded:"`)
	}
	d, err := Lookup(u.Scheme)
	if err != nil {
		return nil, err
	}
	if u.Opaque != "" { // the slashes are missing
		return nil, errMalformed
	}
	if err := checkHosts(u.Scheme, hosts, behind); err != nil {
		return nil, err
	}
	if d.OneHost && len(hosts) > 1 {
		return nil, fmt.Errorf("the broker's URL names %d hosts, and %s takes one", len(hosts), d.Name)
	}
	a := &Address{Driver: d, url: u, hosts: hosts}
	if a.given, err = a.query(); err != nil {
		return nil, err
	}
	u.RawQuery = ""
	maps.Copy(a.given, given)
	if err := a.check(); err != nil {
		return nil, err
	}
	return a, nil
}

// query reads the options in the URL. Its errors hold no secret, nor what may be the rest of one.
func (a *Address) query() (map[string]any, error) {
	query, err := url.ParseQuery(a.url.RawQuery)
	if err != nil {
		return nil, errQuery
	}
	secret := func(name string) bool {
		o, _ := a.Driver.Option(name)
		return o.Secret || slices.Contains(secretNames, strings.ToLower(name))
	}
	holdsSecret := slices.ContainsFunc(slices.Collect(maps.Keys(query)), secret)
	given := map[string]any{}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(query)) {
		o, known := a.Driver.Option(name)
		switch {
		case !known && name != "profile" && holdsSecret && !secret(name):
			return nil, fmt.Errorf("%s does not know an option in the URL's query, which is not quoted because of the secret beside it: %w; known are %s",
				a.Driver.Name, errQuery, strings.Join(a.Driver.names(^Scope(0)), ", "))
		case !known && name != "profile":
			unknown = append(unknown, name)
		case o.Type == Map:
			given[name] = query[name]
			continue
		case len(query[name]) > 1 && o.Type != List && o.Type != Items:
			return nil, fmt.Errorf("option %q: it is given %d times in the URL", name, len(query[name]))
		}
		given[name] = strings.Join(query[name], ",")
	}
	if len(unknown) > 0 {
		return nil, &UnknownOptionError{a.Driver.Name, unknown[0], InURL, a.Driver.names(^Scope(0))}
	}
	return given, nil
}

// secretNames are options whose values are secret, also where a driver has none of that name.
var secretNames = []string{"pass", "passphrase", "passwd", "password", "pwd", "secret", "token"}

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
			return &UnknownOptionError{a.Driver.Name, name, "", a.Driver.names(^Scope(0))}
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

// Resolve gives every option of a scope its value: from given, else the URL, else the profile, else
// the driver's default.
func (a *Address) Resolve(scope Scope, given map[string]any) (Values, error) {
	profile, err := a.Profile(given)
	if err != nil {
		return nil, err
	}
	return a.Driver.Resolve(scope, profile, a.asked(scope, given))
}

// Asked lists, in order, the options of a scope that somebody gave: in the URL, or in given. The
// others have a default.
func (a *Address) Asked(scope Scope, given map[string]any) []string {
	return slices.Sorted(maps.Keys(a.asked(scope, given)))
}

func (a *Address) asked(scope Scope, given map[string]any) map[string]any {
	all := map[string]any{}
	for name, value := range a.given {
		if o, ok := a.Driver.Option(name); ok && o.Scope&scope != 0 {
			all[name] = value
		}
	}
	maps.Copy(all, given)
	delete(all, "profile")
	return all
}

// Open connects.
func (a *Address) Open(ctx context.Context, clientName string) (Conn, error) {
	return a.OpenThrough(ctx, nil, clientName)
}

// OpenThrough connects through a network; nil is the machine's own.
func (a *Address) OpenThrough(ctx context.Context, through *Network, clientName string) (Conn, error) {
	var n Network
	if through != nil {
		n = *through
	}
	if n.Dial != nil && a.Driver.OwnDialer {
		return nil, a.Driver.Wrap("connect to "+a.String(), fmt.Errorf("its client library opens connections by itself: a dialer of its own is %w", errors.ErrUnsupported))
	}
	values, err := a.Resolve(OnConnect, nil)
	if err != nil {
		return nil, err
	}
	target := Target{URL: a.url, Hosts: a.hosts, Options: values, ClientName: clientName, Network: n, files: a.files}
	conn, err := target.open(ctx, a.Driver)
	if err != nil {
		return nil, a.Driver.Wrap("connect to "+a.String(), err)
	}
	return conn, nil
}

// String is the URL without credentials and without its query.
func (a *Address) String() string {
	if a.url.Host == "" {
		return a.url.Scheme + ":" + a.url.Path
	}
	return a.url.Scheme + "://" + strings.Join(a.hosts, ",") + a.url.Path
}

// checkHosts checks every host of a URL: the scheme once, no blank, a port from 1 to 65535, IPv6 in
// brackets.
func checkHosts(scheme string, hosts []string, behind string) error {
	wrong := func(i int, problem string) error {
		return fmt.Errorf(`the broker's URL is malformed: host %d %s; several hosts look like "%s://host1:port,host2:port"`, i+1, problem, scheme)
	}
	for i, host := range hosts {
		if i == len(hosts)-1 && strings.HasSuffix(host, ":") && strings.HasPrefix(behind, "//") {
			return wrong(i, "has a scheme of its own, and the scheme stands once")
		}
		u, err := url.Parse(scheme + "://" + host)
		if err != nil {
			return wrong(i, "is not host:port")
		}
		name := u.Hostname()
		_, notIPv6 := netip.ParseAddr(name)
		switch bracketed := strings.HasPrefix(host, "["); {
		case host == "" && len(hosts) > 1:
			return wrong(i, "is empty")
		case !bracketed && strings.Contains(name, ":"), bracketed && notIPv6 != nil:
			return wrong(i, "is not host:port, where an IPv6 address stands in brackets")
		}
		if port := u.Port(); port != "" {
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				return wrong(i, "has a port that is no number from 1 to 65535")
			}
		}
	}
	return nil
}

// splitHosts takes the list of hosts out of a URL, which net/url does not know of, and leaves the
// first. It gives besides what is behind the hosts: everything where it finds none.
func splitHosts(raw string) (single string, hosts []string, behind string) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return raw, nil, raw
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
	return scheme + "://" + user + hosts[0] + tail, hosts, tail
}
