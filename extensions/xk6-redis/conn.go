package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// conn is a client of one server, of a sentinels' master, or of a cluster. The client library finds
// the server of a key, dials it and runs administrative commands; messages use a [wire].
type conn struct {
	client  redis.UniversalClient
	options driver.Values
	user    string
	// password is for the servers; sentinels have their own.
	password string
	db       int
	name     string // what CLIENT LIST shows
	about    driver.Info
	server   version
	largest  int // proto-max-bulk-len, in bytes: the server closes a connection with a larger argument
}

func open(ctx context.Context, t driver.Target) (*conn, error) {
	c := &conn{options: t.Options, name: clientName(t.ClientName)}
	if err := c.identify(t); err != nil {
		return nil, err
	}
	if err := c.build(t, t.Hosts); err != nil {
		return nil, err
	}
	greeting, cancel := context.WithTimeout(ctx, t.Options.Duration("connectTimeout"))
	defer cancel()
	if err := c.client.Ping(greeting).Err(); err != nil {
		_ = c.client.Close()
		if text := discreet(err.Error()); text != err.Error() {
			err = replyError(text)
		}
		return nil, err
	}
	c.inquire(ctx)
	return c, nil
}

// clientName is a name as CLIENT SETNAME takes it.
func clientName(s string) string {
	return cmp.Or(strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '-'
		}
		return r
	}, s), "xk6-broker")
}

// identify sets user, password and database from the URL, else from the options.
func (c *conn) identify(t driver.Target) error {
	c.user, c.password = t.Login()
	c.db = int(t.Options.Int("db"))
	if path := strings.Trim(t.URL.Path, "/"); path != "" {
		db, err := strconv.Atoi(path)
		if err != nil || db < 0 {
			return fmt.Errorf("the path of the URL is %q and should be the number of a database", path)
		}
		c.db = db
	}
	return nil
}

// build creates the client. It retries nothing, keeps few connections, and announces nothing.
func (c *conn) build(t driver.Target, hosts []string) error {
	dial, err := dialer(t)
	if err != nil {
		return err
	}
	t.Hosts = hosts
	mode, master := c.mode(hosts), c.options.String("master")
	if (mode == "sentinel") != (master != "") {
		return errors.New(`options "mode=sentinel" and "master" need each other`)
	}
	timeout, connect := c.options.Duration("timeout"), c.options.Duration("connectTimeout")
	u := &redis.UniversalOptions{
		Addrs: t.Addresses(ports[mode == "sentinel"]), MasterName: master, IsClusterMode: mode == "cluster",
		Username: c.user, Password: c.password, DB: c.db, OnConnect: c.introduce,
		SentinelUsername: c.options.String("sentinelUser"), SentinelPassword: c.options.String("sentinelPassword"),
		Protocol: 2, DisableIdentity: true,
		MaxRetries: -1, MaxRedirects: -1, DialerRetries: 1, PoolSize: 4,
		DialTimeout: connect, ReadTimeout: timeout, WriteTimeout: timeout, ContextTimeoutEnabled: true,
		Dialer:                   dial,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	switch mode {
	case "cluster":
		if c.db != 0 {
			return errors.New("a cluster has no databases to choose from")
		}
		u.MaxRedirects = 3 // following a redirection is how a cluster is asked
		c.client = redis.NewClusterClient(u.Cluster())
	case "sentinel":
		c.client = redis.NewFailoverClient(u.Failover())
	default:
		if len(hosts) > 1 {
			return errors.New(`several hosts need another "mode" than single`)
		}
		c.client = redis.NewClient(u.Simple())
	}
	return nil
}

// mode returns the kind of the hosts.
func (c *conn) mode(hosts []string) string {
	switch mode := c.options.String("mode"); {
	case mode != "auto":
		return mode
	case c.options.String("master") != "":
		return "sentinel"
	case len(hosts) > 1:
		return "cluster"
	}
	return "single"
}

// introduce names a connection of the client library. CLIENT may be forbidden, and is optional.
func (c *conn) introduce(ctx context.Context, cn *redis.Conn) error {
	if err := cn.ClientSetName(ctx, c.name).Err(); err != nil && !errors.As(err, new(redis.Error)) {
		return err
	}
	return nil
}

// ports are the default ports of servers and of sentinels.
var ports = map[bool]string{false: "6379", true: "26379"}

// node is the client of the server that has the key.
func (c *conn) node(ctx context.Context, key string) (*redis.Client, error) {
	switch client := c.client.(type) {
	case *redis.Client:
		return client, nil
	case *redis.ClusterClient:
		return client.MasterForKey(ctx, key)
	}
	return nil, errors.ErrUnsupported
}

// moved renews a cluster's map in the background after a connection broke, because the key may have
// moved.
func (c *conn) moved(ctx context.Context) {
	if cluster, ok := c.client.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}

// inquire reads the server's version and largest argument. Both are optional.
func (c *conn) inquire(ctx context.Context) {
	c.about = driver.Info{Client: "go-redis " + redis.Version(), Nodes: 1}
	c.largest = maxBulk
	const limit = "proto-max-bulk-len"
	if n, err := strconv.Atoi(c.client.ConfigGet(ctx, limit).Val()[limit]); err == nil && n > 0 {
		c.largest = n
	}
	text, err := c.client.Info(ctx).Result()
	if err != nil {
		return
	}
	info := parseInfo(text)
	c.server = parseVersion(info["redis_version"])
	c.about.Server = "redis " + info["redis_version"]
	if v := info["valkey_version"]; v != "" {
		c.about.Server = "valkey " + v
	}
	if replicas, err := strconv.Atoi(info["connected_slaves"]); err == nil {
		c.about.Nodes += replicas
	}
	if cluster, ok := c.client.(*redis.ClusterClient); ok {
		if text, err := cluster.ClusterInfo(ctx).Result(); err == nil {
			c.about.Nodes, _ = strconv.Atoi(parseInfo(text)["cluster_known_nodes"])
		}
	}
}

// parseInfo reads the lines "name:value" of INFO.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// version is major and minor.
type version struct{ major, minor int }

func parseVersion(s string) (v version) {
	_, _ = fmt.Sscanf(s, "%d.%d", &v.major, &v.minor)
	return v
}

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// Info describes the server.
func (c *conn) Info() driver.Info { return c.about }

// As lends the client library's client, as its own type or as the interface of all modes.
func (c *conn) As(target any) bool {
	switch client := c.client.(type) {
	case *redis.Client:
		return driver.As(target, client) || driver.As(target, c.client)
	case *redis.ClusterClient:
		return driver.As(target, client) || driver.As(target, c.client)
	}
	return false
}

// Close closes the client.
func (c *conn) Close(context.Context) error {
	err := c.client.Close()
	if errors.Is(err, redis.ErrClosed) {
		return nil
	}
	return err
}
