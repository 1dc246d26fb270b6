package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Clusters carry a load, and nothing is lost.
func TestClusters(t *testing.T) {
	t.Parallel()
	p := start(t, clusterPorts, "nats-cluster", "redis-sentinel", "redis-cluster")
	for _, c := range []struct{ name, driver string }{
		{"nats-cluster", "nats-jetstream"}, {"redis-sentinel", "redis-streams"}, {"redis-cluster", "redis-streams"}, {"redis-cluster", "redis-list"},
	} {
		t.Run(c.name+" "+c.driver, func(t *testing.T) {
			o, r := harness.RunToOutcome(t, harness.Pull+`
const conn = broker.connect(__ENV.BROKER_URL);
const p = conn.producer('replicated', { profile: 'durable' });
const c = conn.consumer('replicated', conn.features.groups ? { group: 'workers' } : {});
export async function setup() { await conn.createTopic('replicated', { replicas: 3 }); }
export async function teardown() { await conn.deleteTopic('replicated'); }
`+steady, "SECONDS=3", "BROKER_URL="+p.broker("url", c.name, c.driver))
			b := addsUp(t, o, r, 1500)
			b.nothingLost(t, r)
			if b.failed != 0 {
				t.Errorf("%d failed\n%v", b.failed, r)
			}
		})
	}
}

// askKafka connects to a Kafka and asks it something.
func askKafka(ctx context.Context, brokerURL string, ask func(*kadm.Client) error) error {
	address, err := driver.ParseURL(brokerURL, nil)
	if err != nil {
		return err
	}
	conn, err := address.Open(ctx, "test")
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // it was only asked
	var admin *kadm.Client
	if u, ok := conn.(driver.Unwrapper); !ok || !u.As(&admin) {
		return errors.New("no kadm.Client")
	}
	return ask(admin)
}

// kafkaLeader asks which node leads the only partition of a topic.
func kafkaLeader(ctx context.Context, brokerURL, topic string) (leader int32, err error) {
	err = askKafka(ctx, brokerURL, func(admin *kadm.Client) error {
		topics, err := admin.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		leader = topics[topic].Partitions[0].Leader
		return topics[topic].Err
	})
	return leader, err
}

// The leader of a partition dies, and the others have just been too slow to copy its last second. With acks=all nothing was
// confirmed in that second, and nothing confirmed is lost; with acks=leader it was, and what is lost is counted.
func TestTheLeaderOfAPartitionDies(t *testing.T) {
	t.Parallel()
	p := start(t, clusterPorts, "kafka-cluster")
	brokerURL := p.broker("url", "kafka-cluster", "kafka")
	node := func(id int32) string { return fmt.Sprintf("kafka-cluster/%d", id) }
	die := func(topic string, died *int32) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		leader, err := kafkaLeader(ctx, brokerURL, topic)
		if err != nil {
			return err
		}
		*died = leader
		var others []string
		for id := int32(1); id <= 3; id++ {
			if id != leader {
				others = append(others, node(id))
			}
		}
		if err := p.try(append([]string{"pause"}, others...)...); err != nil {
			return err
		}
		time.Sleep(time.Second) // this is how long the others copy nothing
		err = p.try("kill", node(leader))
		return errors.Join(err, p.try(append([]string{"resume"}, others...)...))
	}
	const script = harness.Pull + `
const topic = __ENV.TOPIC;
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '10s' });
const p = conn.producer(topic, Object.assign({ maxInFlight: 20000, deliveryTimeout: '4s' }, JSON.parse(__ENV.PRODUCER)));
const c = conn.consumer(topic, { group: topic });
export async function setup() { await conn.createTopic(topic, { profile: 'durable', replicas: 3 }); }
` + steady
	t.Run("everybody lives", func(t *testing.T) {
		o, r := harness.RunToOutcome(t, script, "SECONDS=3", "TOPIC=peace", `PRODUCER={"profile":"durable"}`, "BROKER_URL="+brokerURL)
		b := addsUp(t, o, r, 1500)
		b.nothingLost(t, r)
		if b.failed != 0 {
			t.Errorf("%d failed\n%v", b.failed, r)
		}
	})
	for _, c := range []struct {
		name, producer string
		loses          bool
	}{
		{"durable", `{"profile":"durable"}`, false},
		{"acks=leader", `{"acks":"leader"}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			topic, died := strings.ReplaceAll(c.name, "=", "-"), int32(0)
			pulls := harness.Levers(t, map[string]func() error{"fault": func() error { return die(topic, &died) }})
			o, r := harness.RunToOutcome(t, script, "SECONDS=16", "TOPIC="+topic, "PRODUCER="+c.producer, "BROKER_URL="+brokerURL, pulls)
			b := addsUp(t, o, r, 8000)
			if b.failed == 0 || b.confirmed < 1000 {
				t.Errorf("failed %d, confirmed %d: a leader died when a quarter of the time was over\n%v", b.failed, b.confirmed, r)
			}
			if !c.loses {
				b.nothingLost(t, r)
			} else if b.lost == 0 {
				t.Errorf("none is lost of what only the dead leader had\n%v", r)
			}
			p.broker("restart", node(died))
		})
	}
}

// quorumLeader asks RabbitMQ which node leads a quorum queue: rabbit2@localhost is node 2.
func quorumLeader(ctx context.Context, management, queue string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, management+"/api/queues/%2F/"+url.PathEscape(queue), nil)
	if err != nil {
		return "", err
	}
	request.SetBasicAuth("guest", "guest")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	var answer struct {
		Leader  string   `json:"leader"`
		Members []string `json:"members"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return "", err
	}
	leader, ok := strings.CutPrefix(strings.TrimSuffix(answer.Leader, "@localhost"), "rabbit")
	if !ok || len(answer.Members) != 3 {
		return "", fmt.Errorf("the leader of %s is %q, its members are %v", queue, answer.Leader, answer.Members)
	}
	return leader, nil
}

// The node that leads a quorum queue dies. To clients of another node that is a pause. Those of the node itself lose their
// connection; and what they send on a channel that is opened before there is a new leader, RabbitMQ 3.10 goes on refusing.
func TestTheLeaderOfAQuorumQueueDies(t *testing.T) {
	t.Parallel()
	p := start(t, clusterPorts, "rabbitmq-cluster")
	management := ""
	for line := range strings.Lines(p.broker("ports", "rabbitmq-cluster")) {
		if port, ok := strings.CutPrefix(strings.TrimSpace(line), "BROKER_PORT_RABBITMQ_CLUSTER_3_MANAGEMENT="); ok {
			management = "http://127.0.0.1:" + port
		}
	}
	first := p.broker("url", "rabbitmq-cluster", "rabbitmq")
	scheme, hosts, _ := strings.Cut(first, "@")
	host := strings.Split(hosts, ",")
	last := scheme + "@" + host[1] + "," + host[2] + "," + host[0]
	for _, c := range []struct{ name, clients string }{{"of others", last}, {"their own", first}} {
		t.Run(c.name, func(t *testing.T) {
			queue, died := strings.ReplaceAll(c.name, " ", "-"), ""
			pulls := harness.Levers(t, map[string]func() error{"fault": func() (err error) {
				if died, err = quorumLeader(t.Context(), management, queue); err != nil {
					return err
				}
				return p.try("kill", "rabbitmq-cluster/"+died)
			}})
			o, r := harness.RunToOutcome(t, harness.Pull+`
const queue = __ENV.QUEUE;
const admin = broker.connect(__ENV.ADMIN_URL);
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '30s' });
const p = conn.producer(queue, { profile: 'durable', maxInFlight: 10000 });
const c = conn.consumer(queue, { group: 'workers' });
export async function setup() { await admin.createTopic(queue, { profile: 'durable', replicas: 3 }); }
`+steady, "SECONDS=10", "QUEUE="+queue, "ADMIN_URL="+first, "BROKER_URL="+c.clients, pulls)
			b := addsUp(t, o, r, 5000)
			b.nothingLost(t, r)
			if (b.failed != 0) != (c.clients == first) || b.confirmed < 1000 {
				t.Errorf("failed %d, confirmed %d\n%v", b.failed, b.confirmed, r)
			}
			p.broker("restart", "rabbitmq-cluster/"+died)
		})
	}
}

// A Redis is killed and started again, while a backlog waits in it. With an append-only file, which it gives to the operating
// system before it answers (unless that is slow to write), what was confirmed is there again. In memory only, it is lost.
func TestRedisIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	p := start(t, clusterPorts, "redis", "redis-memory")
	for _, name := range []string{"redis", "redis-memory"} {
		t.Run(name, func(t *testing.T) {
			pulls := harness.Levers(t, map[string]func() error{
				"fault": func() error { return errors.Join(p.try("kill", name), p.try("restart", name)) },
			})
			o, r := harness.RunToOutcome(t, harness.Pull+`
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '5s' });
const p = conn.producer('killed', { create: true });
const c = conn.consumer('killed', { group: 'workers', prefetch: 100 });
export async function setup() { await conn.createTopic('killed'); }
`+steady, "SECONDS=8", "WORK=3ms", "BROKER_URL="+p.broker("url", name, "redis-streams"), pulls)
			b := addsUp(t, o, r, 4000)
			if b.failed == 0 || b.confirmed < 2000 {
				t.Errorf("failed %d, confirmed %d: the server was down for a moment of eight seconds\n%v", b.failed, b.confirmed, r)
			}
			if name == "redis-memory" && b.lost == 0 {
				t.Errorf("the server forgot everything, and nothing is lost\n%v", r)
			}
		})
	}
}
