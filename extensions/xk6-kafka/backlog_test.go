package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// The consumers of a group may have received messages that the broker has dropped since.
func TestBacklog_UncommittedMessagesDropped_Estimate(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 1)
	c := f.consumer(t, topic, topic, earliest)
	defer func() { closed(t, c) }()
	f.send(t, f.producer(t, topic, nil), numbered("m", 20))
	take(t, c, 5)
	check := func(want driver.Backlog) {
		t.Helper()
		got, err := f.conn.(driver.Backlogger).Backlog(within(t), topic, topic)
		if err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	check(driver.Backlog{Messages: 20})
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, At: 4})
	deleted, err := f.conn.(*conn).admin.DeleteRecords(within(t), offsets)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	check(driver.Backlog{Messages: 16, Estimate: true})
}
