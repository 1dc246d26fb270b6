package cells

import (
	"strings"
	"testing"
)

// The texts of a study have no secrets; the environment of a process has.
func TestShown_NoSecrets(t *testing.T) {
	v := Settings{"URL": "amqp://user:hush@h:1,g:2/v?password=hush&heartbeat=5s", "BROKER_PASSWORD": "hush", "RATE": "5"}
	if got := v.String(); got != "BROKER_PASSWORD=xxxxx RATE=5 URL=amqp://xxxxx@h:1,g:2/v?password=xxxxx&heartbeat=5s" {
		t.Error(got)
	}
	if env := strings.Join(v.environment(), " "); strings.Count(env, "hush") != 3 {
		t.Error(env)
	}
	for text, want := range map[string]string{
		"jetstream://hush@h:4222":                        "jetstream://xxxxx@h:4222",
		"nats://h:4222/x":                                "nats://h:4222/x",
		"sqs://h?ACCESS_KEY=hush&region=eu&api_key=hush": "sqs://h?ACCESS_KEY=xxxxx&region=eu&api_key=xxxxx",
		"api_key=hush":                                   "api_key=xxxxx",
		"PGPASSWORD='hush hush' psql -c 'select 1'":      "PGPASSWORD=xxxxx psql -c 'select 1'",
		"redis-cli --pass hush flushall":                 "redis-cli --pass xxxxx flushall",
		"KEYS=5,6":                                       "KEYS=5,6",
	} {
		if got := Shown(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	args := "-e KAFKA_PASSWORD=hush --env=API_TOKEN=hush -e=X=nats://hush@h --out influxdb=http://u:hush@h/?x=1 -e RATE=5 --vus 5"
	want := "-e KAFKA_PASSWORD=xxxxx --env=API_TOKEN=xxxxx -e=X=nats://xxxxx@h --out influxdb=http://xxxxx@h/?x=1 -e RATE=5 --vus 5"
	if got := Shown(args); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
