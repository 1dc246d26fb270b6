package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// droppingNATS is a proxy in front of a NATS server that keeps deliveries from a client.
type droppingNATS struct {
	listener net.Listener
	target   string
	drops    *regexp.Regexp // of what is delivered
	dropped  atomic.Int64
	serving  sync.WaitGroup
}

// dropNATS starts one, and gives its URL.
func dropNATS(t *testing.T, address, drops string) (*droppingNATS, string) {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &droppingNATS{target: target.Host, drops: regexp.MustCompile(drops)}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	p.serving.Go(func() {
		for {
			client, err := p.listener.Accept()
			if err != nil {
				return
			}
			p.serving.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.serving.Wait()
	})
	target.Host = p.listener.Addr().String()
	return p, target.String()
}

func (p *droppingNATS) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.serving.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	defer func() { _ = client.Close() }()
	for from := bufio.NewReader(server); ; {
		frame, err := from.ReadBytes('\n')
		if err != nil {
			return
		}
		if words := strings.Fields(string(frame)); len(words) > 0 && (words[0] == "MSG" || words[0] == "HMSG") {
			size, err := strconv.Atoi(words[len(words)-1])
			if err != nil {
				return
			}
			body := make([]byte, size+len("\r\n"))
			if _, err := io.ReadFull(from, body); err != nil {
				return
			}
			if p.drops.Match(body) {
				p.dropped.Add(1)
				continue
			}
			frame = append(frame, body...)
		}
		if _, err := client.Write(frame); err != nil {
			return
		}
	}
}

// The last that another process sent never comes to a subscriber, at a broker that keeps nothing: it is lost, though the subscriber leaves right after. So is what it
// sent first.
func TestTheLastThatAnotherProcessSentIsMissed(t *testing.T) {
	t.Parallel()
	for which, drops := range map[string]string{"last": `\bn3[89][13579]\r\n$`, "first": `\bn1?[13579]\r\n$`} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			address := external(t, "BROKER_URL_NATS")
			proxy, throughProxy := dropNATS(t, address, drops)
			p := pairUp(t, address, [2][]string{{k6Path}, {k6Path}}, [2][]string{{"BROKER_URL=" + throughProxy}, {}})
			said, whole := p.merge()
			if proxy.dropped.Load() != 10 || len(whole.Topics) != 1 || len(whole.Topics[0].Groups) != 1 {
				t.Fatalf("%d were dropped: %+v\n%s", proxy.dropped.Load(), whole.Topics, said)
			}
			a := whole.Topics[0].Groups[0].Account
			if got, want := fmt.Sprint(a.Expected, a.Received+a.Drained, a.Lost, a.Uncertain, a.Unexpected), "800 790 10 0 0"; got != want {
				t.Errorf("expected, received, lost, uncertain, unexpected: %s, want %s\n%s", got, want, said)
			}
		})
	}
}

// sparse is a script of which each process has a subscriber, and a message a second.
const sparse = `
import broker from 'k6/x/broker';
const { BROKER_URL, TOPIC } = __ENV;
const conn = broker.connect(BROKER_URL);
const producer = conn.producer(TOPIC);
const consumer = conn.consumer(TOPIC);
export const options = {
  scenarios: {
    consume: { executor: 'consumers', vus: 2, exec: 'consume' },
    produce: { executor: 'open-arrival-rate', rate: 2, duration: '4s', preAllocatedVUs: 2, exec: 'produce' },
  },
};
export async function produce() { await producer.send('x'); }
export async function consume() { await consumer.consume({}); }
export { handleSummary } from 'k6/x/broker';
`

// Processes that do not wait for each other end one after the other. What the later one sends when the consumers of the first have left, of a broker that keeps
// nothing, is a reason against the whole; those that do wait have no such messages.
func TestWhatIsSentWhenTheConsumersOfOthersHaveLeft(t *testing.T) {
	t.Parallel()
	for peers, late := range map[string]bool{"off": true, "1m": false} {
		for _, broker := range []string{"BROKER_URL_NATS", "BROKER_URL_REDIS_PUBSUB"} {
			t.Run(peers+" "+broker, func(t *testing.T) {
				t.Parallel()
				p := pairOf(t, sparse, external(t, broker), 3*time.Second, [2][]string{{k6Path}, {k6Path}}, [2][]string{{"BROKER_PEERS=" + peers}, {"BROKER_PEERS=" + peers}})
				said, whole := p.merge()
				if len(whole.Topics) != 1 || len(whole.Topics[0].Groups) != 1 {
					t.Fatalf("%+v\n%s", whole.Topics, said)
				}
				a := whole.Topics[0].Groups[0].Account
				named := regexp.MustCompile(`[1-9] messages \([0-9.]+ %\) were sent after the last consumer had left`).MatchString(said)
				if named != late || a.Lost != 0 || a.Uncertain != 0 || a.Expected != a.Received || !late && a.Received != 16 {
					t.Errorf("named %v: %+v\n%s", named, a, said)
				}
				if whole.Verdict.Valid && late {
					t.Error(said)
				}
			})
		}
	}
}

// emptied is a script that fills a topic, and empties it again, before it begins.
const emptied = `
import broker from 'k6/x/broker';
const { BROKER_URL, TOPIC } = __ENV;
const conn = broker.connect(BROKER_URL);
const producer = conn.producer(TOPIC);
const consumer = conn.consumer(TOPIC, { group: 'workers', start: 'earliest' });
export const options = {
  scenarios: {
    consume: { executor: 'consumers', exec: 'consume' },
    produce: { executor: 'open-arrival-rate', rate: 20, duration: '1s', preAllocatedVUs: 4, exec: 'produce' },
  },
};
export async function setup() {
  await conn.createTopic(TOPIC);
  await producer.produce({ count: 50 });
  await conn.purge(TOPIC);
  await producer.produce({ count: 10 });
}
export async function produce() { await producer.send('x'); }
export async function consume() { await consumer.consume({}); }
export { handleSummary } from 'k6/x/broker';
`

// What all processes sent before one emptied the topic for all nobody expects, also where the clock of the other one is off.
func TestWhatSetupRemovedForAllProcessesNobodyExpects(t *testing.T) {
	t.Parallel()
	far := skewed(t)
	for _, broker := range []string{"BROKER_URL_NATS_JETSTREAM", "BROKER_URL_REDIS_STREAMS"} {
		for _, ahead := range []string{"1s", "-1s"} {
			t.Run(broker+" "+ahead, func(t *testing.T) {
				p := pairOf(t, emptied, external(t, broker), time.Second, [2][]string{{k6Path}, far}, [2][]string{{}, {"SKEW=" + ahead}})
				said, whole := p.merge()
				if len(whole.Topics) != 1 || len(whole.Topics[0].Groups) != 1 {
					t.Fatalf("%+v\n%s", whole.Topics, said)
				}
				a := whole.Topics[0].Groups[0].Account
				if got, want := fmt.Sprint(a.Expected, a.Received, a.Lost, a.Uncertain, a.Removed, a.Unexpected), "30 30 0 0 0 0"; got != want {
					t.Errorf("expected, received, lost, uncertain, removed, unexpected: %s, want %s\n%s", got, want, said)
				}
			})
		}
	}
}
