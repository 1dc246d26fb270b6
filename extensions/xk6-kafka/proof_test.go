package kafka

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func (f *fixture) proves(t *testing.T, replicas int, made, given map[string]any) driver.Proof {
	t.Helper()
	spec := driver.TopicSpec{Name: newTopicName(), Partitions: 1, Replicas: replicas, Options: f.values(t, driver.OnTopic, made)}
	if err := f.admin().CreateTopic(within(t), spec); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.admin().DeleteTopic(within(t), spec.Name); err != nil {
			t.Error(err)
		}
	}()
	prover := f.conn.(driver.Prover)
	return prover.Proof(within(t), driver.ProducerConfig{Topic: spec.Name, Window: 1, Options: f.values(t, driver.OnProducer, given)}, nil)
}

func TestWhatAConfirmationProves(t *testing.T) {
	t.Parallel()
	f := single(t)
	for acks, want := range map[string]driver.Proof{
		"none":   {Confirm: driver.Unconfirmed, How: "acks=none"},
		"leader": {Confirm: driver.Accepted, How: "acks=leader"},
		"all":    {Confirm: driver.Accepted, How: "acks=all, 1 replica"},
	} {
		if got := f.proves(t, 1, nil, map[string]any{"acks": acks}); got != want {
			t.Errorf("acks=%s: %v: %q", acks, got.Confirm, got.How)
		}
	}
	missing := driver.ProducerConfig{Topic: newTopicName(), Window: 1, Options: f.values(t, driver.OnProducer, nil)}
	if got := f.conn.(driver.Prover).Proof(within(t), missing, nil); got.Confirm != driver.Accepted {
		t.Errorf("a topic that is not there: %v: %q", got.Confirm, got.How)
	}
}

func TestWhatAConfirmationProvesInACluster(t *testing.T) {
	f := cluster(t)
	for least, want := range map[int]driver.Proof{
		1: {Confirm: driver.Accepted, How: "acks=all, 3 replicas, min.insync.replicas 1"},
		2: {Confirm: driver.Replicated, How: "acks=all, 3 replicas, min.insync.replicas 2"},
	} {
		if got := f.proves(t, 3, map[string]any{"minInsyncReplicas": least}, nil); got != want {
			t.Errorf("%d in sync at least: %v: %q", least, got.Confirm, got.How)
		}
	}
	if got := f.proves(t, 3, nil, map[string]any{"acks": "leader"}); got.Confirm != driver.Accepted {
		t.Errorf("acks=leader: %v: %q", got.Confirm, got.How)
	}
}
