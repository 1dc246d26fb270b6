package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func TestTopicConfigs(t *testing.T) {
	t.Parallel()
	f := single(t)
	const topic = "test-configs"
	spec := driver.TopicSpec{Name: topic, Partitions: 2, Replicas: 1, Options: f.values(t, driver.OnTopic, map[string]any{
		"profile": "durable", "retention": "1h", "configs": map[string]any{"cleanup.policy": "compact,delete", "segment.bytes": int64(1048576)},
	})}
	if err := f.admin().CreateTopic(within(t), spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.admin().DeleteTopic(within(t), topic); err != nil {
			t.Error(err)
		}
	})
	var admin *kadm.Client
	f.conn.(driver.Unwrapper).As(&admin)
	described, err := admin.DescribeTopicConfigs(within(t), topic)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range described[0].Configs {
		got[c.Key] = c.MaybeValue()
	}
	for name, want := range map[string]string{
		"retention.ms": "3600000", "cleanup.policy": "compact,delete", "segment.bytes": "1048576",
		"min.insync.replicas": "1", // of two that durable asks for, as there is one replica
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// A topic is described as it is, also where another was there a moment ago, and whatever was asked for since.
func TestATopicIsDescribedAsItIs(t *testing.T) {
	t.Parallel()
	f := single(t)
	const topic = "test-described"
	describer := f.conn.(driver.TopicDescriber)
	settings := map[string]any{"retention": "1h", "configs": "segment.bytes=1048576"}
	for _, partitions := range []int{2, 3} {
		for _, asked := range []int{partitions, 6} { // the second time it exists
			spec := driver.TopicSpec{Name: topic, Partitions: asked, Replicas: 1, Options: f.values(t, driver.OnTopic, settings)}
			if err := f.admin().CreateTopic(within(t), spec); err != nil {
				t.Fatal(err)
			}
			got, err := describer.DescribeTopic(within(t), topic)
			if err != nil || got.Partitions != partitions || got.Replicas != 1 || got.Options.Duration("retention") != time.Hour ||
				got.Options.Map("configs")["segment.bytes"] != "1048576" {
				t.Errorf("asked for %d partitions: %+v, %v, want %d", asked, got, err, partitions)
			}
		}
		if err := f.admin().DeleteTopic(within(t), topic); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := describer.DescribeTopic(within(t), topic); f.address.Driver.KindOf(err) != driver.NotFound {
		t.Errorf("%v, want one of kind not_found", err)
	}
}

// More replicas than there are cannot be asked of: what the broker has is another number, and is not told as the one asked for.
func TestMoreInSyncThanThereAre(t *testing.T) {
	t.Parallel()
	f := single(t)
	const topic = "test-in-sync"
	spec := driver.TopicSpec{Name: topic, Partitions: 1, Replicas: 1, Options: f.values(t, driver.OnTopic, map[string]any{"minInsyncReplicas": 5})}
	if err := f.admin().CreateTopic(within(t), spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.admin().DeleteTopic(within(t), topic) })
	got, err := f.conn.(driver.TopicDescriber).DescribeTopic(within(t), topic)
	if _, told := got.Options["minInsyncReplicas"]; told || err != nil {
		t.Errorf("%+v, %v", got.Options, err)
	}
}

func TestTopicsThatCannotBe(t *testing.T) {
	t.Parallel()
	f := single(t)
	for name, c := range map[string]struct {
		spec driver.TopicSpec
		want string
	}{
		"an unknown config":       {driver.TopicSpec{Name: "bad", Partitions: 1, Replicas: 1, Options: driver.Values{"configs": map[string]any{"no.such": int64(1)}}}, "no.such"},
		"more replicas than ever": {driver.TopicSpec{Name: "bad", Partitions: 1, Replicas: 9}, "REPLICATION"},
		"a name that is none":     {driver.TopicSpec{Name: "a/b", Partitions: 1, Replicas: 1}, "TOPIC"},
	} {
		err := f.admin().CreateTopic(within(t), c.spec)
		if err == nil || !strings.Contains(err.Error(), c.want) || f.address.Driver.KindOf(err) != driver.Rejected {
			t.Errorf("%s: %v, want one of kind rejected that says %q", name, err, c.want)
		}
	}
}

// How many of a compacted topic's offsets have a record nobody tells.
func TestTheBacklogOfACompactedTopicIsAnEstimate(t *testing.T) {
	t.Parallel()
	f := single(t)
	for policy, want := range map[string]bool{"delete": false, "compact": true, "compact,delete": true} {
		name := newTopicName()
		spec := driver.TopicSpec{Name: name, Partitions: 1, Replicas: 1, Options: f.values(t, driver.OnTopic, map[string]any{"configs": []any{"cleanup.policy=" + policy}})}
		if err := f.admin().CreateTopic(within(t), spec); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := f.admin().DeleteTopic(within(t), name); err != nil {
				t.Error(err)
			}
		})
		asked := func() driver.Backlog {
			b, err := f.conn.(driver.Backlogger).Backlog(within(t), name, "g-"+name)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		if b := asked(); b != (driver.Backlog{}) {
			t.Errorf("%s, empty: %+v", policy, b)
		}
		batch := numbered("m", 5)
		for i := range batch {
			batch[i].Key = []byte("k")
		}
		f.send(t, f.producer(t, name, nil), batch)
		if b := asked(); b.Messages != 5 || b.Estimate != want {
			t.Errorf("%s: %+v", policy, b)
		}
	}
}
