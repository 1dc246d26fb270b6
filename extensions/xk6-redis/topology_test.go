package redis_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
)

var schemes = []string{"redis-streams", "redis-pubsub", "redis-list"}

// cluster starts masters and a replica of each.
func cluster(t *testing.T, masters int) (nodes []*server) {
	t.Helper()
	ctx := t.Context()
	for range 2 * masters {
		nodes = append(nodes, start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000"))
	}
	const slots = 16384
	for i, n := range nodes[:masters] {
		if err := n.client.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes[1:] {
		if err := n.client.ClusterMeet(ctx, "127.0.0.1", fmt.Sprint(nodes[0].port)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range nodes[masters:] {
		master := nodes[i]
		id := master.client.ClusterMyID(ctx).Val()
		await(t, "a replica has a master", func() bool { return n.client.ClusterReplicate(ctx, id).Err() == nil })
	}
	for _, n := range nodes {
		await(t, "the cluster is complete", func() bool {
			info := n.client.ClusterInfo(ctx).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", 2*masters))
		})
	}
	for _, n := range nodes[:masters] {
		n.awaitReplica(t)
	}
	return nodes
}

func urlOf(scheme string, nodes ...*server) string {
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.addr())
	}
	return scheme + "://" + strings.Join(addrs, ",")
}

func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	nodes := cluster(t, 3)
	for _, scheme := range schemes {
		t.Run(scheme, func(t *testing.T) {
			drivertest.Run(t, drivertest.Harness{Driver: scheme, URL: urlOf(scheme, nodes[:3]...), NoProxy: true, HeaderBytes: true})
		})
	}
	t.Run("sharded", func(t *testing.T) {
		drivertest.Run(t, drivertest.Harness{
			Driver: "redis-pubsub", URL: urlOf("redis-pubsub", nodes[:3]...) + "?sharded=true", NoProxy: true,
		})
	})
	t.Run("failover", func(t *testing.T) { surviveFailover(t, urlOf("redis-streams", nodes...), nodes) })
}

// surviveFailover kills the server that has the topic and sends on: what was confirmed by a replica must come.
func surviveFailover(t *testing.T, address string, nodes []*server) {
	t.Helper()
	c := dial(t, address)
	topic := topic(t, c)
	r := group(t, c, address, topic, nil)
	p := produce(t, c, address, topic, 100, map[string]any{"wait": 1})
	mustSend(t, p, numbered("before", 20)...)
	for _, n := range nodes {
		if n.client.Exists(t.Context(), topic).Val() == 1 && strings.Contains(n.client.Info(t.Context(), "replication").Val(), "role:master") {
			n.kill(t)
			break
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	// The new master has no replica, so what it accepts is not proven and cannot be asked for.
	after := produceWhenBack(t, ctx, c, address, topic)
	seen := map[string]bool{}
	for b := make(driver.Batch, 100); !seen["after"] && ctx.Err() == nil; {
		if err := sendOne(ctx, after, "after"); err != nil {
			time.Sleep(20 * time.Millisecond)
		}
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		n, _ := r.Receive(short, b) // errors tell of the failover
		cancel()
		for _, m := range b[:n] {
			seen[string(m.Body)] = true
		}
	}
	for _, body := range append(numbered("before", 20), "after") {
		if !seen[body] {
			t.Errorf("%s was confirmed and did not come", body)
		}
	}
}

func produceWhenBack(t *testing.T, ctx context.Context, c driver.Conn, address, topic string) driver.Producer {
	t.Helper()
	for {
		p, err := c.NewProducer(ctx, driver.ProducerConfig{Topic: topic, Window: 10, Options: resolve(t, address, driver.OnProducer, nil)})
		if err == nil {
			t.Cleanup(func() { shut(t, p) })
			return p
		}
		if ctx.Err() != nil {
			t.Fatalf("no producer after the failover: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func sendOne(ctx context.Context, p driver.Producer, body string) error {
	result := make(chan error, 1)
	p.Send(ctx, driver.Batch{{Body: []byte(body)}}, func(_ int, err error) { result <- err })
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestSentinel(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	master := start(t)
	follower := replica(t, master)
	var sentinels []*server
	for i := range 3 {
		config := filepath.Join(t.TempDir(), fmt.Sprintf("sentinel-%d.conf", i))
		lines := fmt.Sprintf("sentinel monitor mymaster 127.0.0.1 %d 2\nsentinel down-after-milliseconds mymaster 500\nsentinel failover-timeout mymaster 3000\n", master.port)
		if err := os.WriteFile(config, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		sentinels = append(sentinels, sentinel(t, config))
	}
	for _, s := range sentinels {
		await(t, "the sentinels know each other and the replica", func() bool {
			return strings.Contains(s.client.Info(context.Background(), "sentinel").Val(), "status=ok,address="+master.addr()+",slaves=1,sentinels=3")
		})
	}
	for _, scheme := range schemes {
		t.Run(scheme, func(t *testing.T) {
			drivertest.Run(t, drivertest.Harness{
				Driver: scheme, URL: urlOf(scheme, sentinels...) + "?master=mymaster", NoProxy: true, HeaderBytes: true,
			})
		})
	}
	t.Run("failover", func(t *testing.T) {
		surviveFailover(t, urlOf("redis-streams", sentinels...)+"?master=mymaster", []*server{master, follower})
	})
}

// sentinel starts one with a configuration file, which it rewrites.
func sentinel(t *testing.T, config string) *server {
	t.Helper()
	return startWith(t, config, "--sentinel")
}

func TestModes(t *testing.T) {
	for query, want := range map[string]string{
		"h1,h2?mode=single":        "single",
		"h1?mode=sentinel":         "master",
		"h1?mode=cluster&db=1":     "databases",
		"h1/nine":                  "number of a database",
		"h1?tlsCA=/does/not/exist": "tlsCA",
		"h1?tlsCert=x":             "tlsCert",
		"h1?master=m&mode=cluster": "master",
	} {
		a, err := driver.ParseURL("redis-streams://user:s3cret@"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Open(t.Context(), "test")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestDatabases(t *testing.T) {
	s := plain(t)
	other := redis.NewClient(&redis.Options{Addr: s.addr(), DB: 3})
	defer func() { _ = other.Close() }()
	for _, u := range []string{s.url("redis-streams") + "/3", s.url("redis-streams") + "?db=3"} {
		c := dial(t, u)
		name := topic(t, c)
		mustSend(t, produce(t, c, u, name, 10, nil), "x")
		if n := other.XLen(t.Context(), name).Val(); n != 1 {
			t.Errorf("%d messages in database 3", n)
		}
	}
}
