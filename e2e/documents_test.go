package e2e

import (
	"regexp"
	"slices"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

var shownScripts = regexp.MustCompile("(?ms)^## (.*?)\n.*?^```js\n(.*?)^```$")

// Each script of docs/coming-from.md runs on a server of its tool's broker, and loses nothing.
func TestComingFrom_EachScript_Runs(t *testing.T) {
	servers := map[string]string{
		"A script of xk6-kafka": "BROKER_URL_KAFKA", "A script of xk6-amqp": "BROKER_URL_RABBITMQ",
		"A script of xk6-nats": "BROKER_URL_NATS", "A command of PerfTest": "BROKER_URL_RABBITMQ",
	}
	shown := shownScripts.FindAllStringSubmatch(string(harness.Read(t, harness.Repo("docs", "coming-from.md"))), -1)
	if len(shown) != len(servers) {
		t.Fatalf("the page shows %d scripts, want %d", len(shown), len(servers))
	}
	for _, found := range shown {
		heading, script := found[1], found[2]
		t.Run(heading, func(t *testing.T) {
			t.Parallel()
			r, s := harness.Scenario(t, harness.Script(t, script), "BROKER_URL="+harness.URL(t, servers[heading]))
			if len(s.Topics) == 0 {
				t.Fatal(r)
			}
			for _, topic := range s.Topics {
				if topic.Counts["sent"] == 0 || topic.Counts["confirmed"] != topic.Counts["sent"] || len(topic.Groups) == 0 ||
					slices.ContainsFunc(topic.Groups, func(g summary.Group) bool { return !complete(g, false) }) {
					t.Errorf("%s: %+v\n%v", topic.Topic, topic.Groups, r)
				}
			}
		})
	}
}
