package kurrentdb

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/streams"
	"google.golang.org/grpc"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-kurrentdb/internal/double"
)

func TestATopicThatIsNotThere(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	for what, err := range map[string]error{
		"a producer": func() error {
			_, err := c.NewProducer(f.context(), driver.ProducerConfig{Topic: "none", Options: f.resolve(driver.OnProducer, nil)})
			return err
		}(),
		"a consumer": func() error {
			_, err := c.NewConsumer(f.context(), driver.ConsumerConfig{Topic: "none", Group: "g", Prefetch: 1, Options: f.resolve(driver.OnConsumer, nil)})
			return err
		}(),
		"purge": c.PurgeTopic(f.context(), "none"),
	} {
		if f.kind(err) != driver.NotFound {
			t.Errorf("%s: kind %s: %v", what, f.kind(err), err)
		}
	}
}

// A stream that is deleted and created again has nothing of what it had, and its numbers go on. Its groups are new ones.
func TestDeletedAndCreatedAgain(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	for range 2 { // and nothing in it
		f.topic(c, "t")
		if err := c.DeleteTopic(f.context(), "t"); err != nil {
			t.Fatal(err)
		}
		if err := c.DeleteTopic(f.context(), "t"); f.kind(err) != driver.NotFound {
			t.Errorf("deleted twice: %v", err)
		}
	}
	f.topic(c, "t")
	for round := range 3 {
		p := f.producer(c, "t", nil)
		var place driver.Place
		if err := errors.Join(f.send(p, driver.Batch{{Body: []byte{'0' + byte(round)}}, {Body: []byte("last"), Place: &place}})...); err != nil {
			t.Fatal(err)
		}
		if want := uint64(2*round + 1); place.Position != driver.At(want) {
			t.Errorf("round %d: at %v, want %d", round, place.Position, want)
		}
		for _, group := range []string{"g", ""} {
			r := f.consumer(c, "t", group, nil)
			if got := f.receive(r, 2); got[0].Body[0] != '0'+byte(round) || string(got[1].Body) != "last" {
				t.Errorf("round %d, group %q: %q and %q", round, group, got[0].Body, got[1].Body)
			}
			_ = r.Close(f.context())
		}
		if err := c.DeleteTopic(f.context(), "t"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Backlog(f.context(), "t", "g"); f.kind(err) != driver.NotFound {
			t.Errorf("the group of a topic that was deleted: %v", err)
		}
		f.topic(c, "t")
	}
}

// Who finds a stream that is a tombstone is told so.
func TestTombstone(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	f.topic(c, "t")
	p := f.producer(c, "t", nil)
	if err := c.call(f.context(), func(ctx context.Context, o grpc.CallOption) error {
		_, err := c.events.Tombstone(ctx, &streams.TombstoneReq{Options: &streams.TombstoneReq_Options{
			StreamIdentifier: identifier("t"), ExpectedStreamRevision: &streams.TombstoneReq_Options_Any{Any: &shared.Empty{}},
		}}, o)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := f.send(p, bodies("late"))[0]; f.kind(err) != driver.Rejected {
		t.Errorf("kind %s: %v", f.kind(err), err)
	}
}

// A group has read what it has not delivered yet, and a member has it: a purge reaches both, and the member goes on.
func TestPurgeReachesWhatGroupsHaveRead(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	f.topic(c, "t")
	p := f.producer(c, "t", nil)
	r, err := c.NewConsumer(f.context(), driver.ConsumerConfig{
		Topic: "t", Group: "g", Prefetch: 1, Start: driver.StartEarliest, Options: f.resolve(driver.OnConsumer, map[string]any{"maxRetryCount": 7}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(f.context()) //nolint:errcheck // it never fails
	if err := errors.Join(f.send(p, bodies("a", "b", "c"))...); err != nil {
		t.Fatal(err)
	}
	f.receive(r, 1)
	if err := c.PurgeTopic(f.context(), "t"); err != nil {
		t.Fatal(err)
	}
	if err := f.send(p, bodies("after"))[0]; err != nil {
		t.Fatal(err)
	}
	b := make(driver.Batch, 1)
	for { // until it is subscribed again
		if n, err := r.Receive(f.context(), b); err == nil && n == 1 {
			break
		} else if f.kind(err) != driver.NotFound {
			t.Fatal(err)
		}
	}
	if string(b[0].Body) != "after" {
		t.Errorf("%q came, which was purged", b[0].Body)
	}
	info, err := c.group(f.context(), "t", "g")
	if err != nil || info.GetMaxRetryCount() != 7 || info.GetBufferSize() != 500 || info.GetStartFrom() != "3" {
		t.Errorf("the group is %v, %v", info, err)
	}
}

func TestWhatATopicIs(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	spec := driver.TopicSpec{Name: "t", Options: f.resolve(driver.OnTopic, map[string]any{"maxCount": 2, "maxAge": "1h"})}
	if err := c.CreateTopic(f.context(), spec); err != nil {
		t.Fatal(err)
	}
	f.topic(c, "t") // once more, with other options, which changes nothing
	got, err := c.DescribeTopic(f.context(), "t")
	if err != nil || got.Options["maxCount"] != int64(2) || got.Options["maxAge"] != time.Hour || got.Replicas != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	p := f.producer(c, "t", nil)
	if err := errors.Join(f.send(p, bodies("a", "b", "c"))...); err != nil {
		t.Fatal(err)
	}
	if err := c.PurgeTopic(f.context(), "t"); err != nil {
		t.Fatal(err)
	}
	if again, err := c.DescribeTopic(f.context(), "t"); err != nil || again.Options["maxCount"] != int64(2) {
		t.Errorf("after a purge: %+v, %v", again, err)
	}
}

// Many that create one topic at a time all have it.
func TestCreatedByMany(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	errs := make(chan error, 16)
	for range cap(errs) {
		go func() { errs <- c.CreateTopic(f.context(), driver.TopicSpec{Name: "t", Options: driver.Values{}}) }()
	}
	var all []error
	for range cap(errs) {
		all = append(all, <-errs)
	}
	if err := errors.Join(slices.DeleteFunc(all, func(err error) bool { return err == nil })...); err != nil {
		t.Error(err)
	}
}
