package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// What a group received and did not settle is in no backlog after the broker has dropped it.
func TestBacklog_ReceivedMessagesDropped_AreReported(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 1)
	c := f.consumer(t, topic, topic, earliest)
	f.send(t, f.producer(t, topic, nil), numbered("m", 20))
	take(t, c, 5)
	asked := func(when string, messages, dropped int64) {
		t.Helper()
		b, err := f.conn.(driver.Backlogger).Backlog(within(t), topic, topic)
		if err != nil || b.Messages != messages || b.Dropped != dropped {
			t.Errorf("%s: %+v, %v; want %d messages, %d dropped", when, b, err, messages, dropped)
		}
	}
	deleteTo := func(offset int64) {
		t.Helper()
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{Topic: topic, At: offset})
		deleted, err := f.conn.(*conn).admin.DeleteRecords(within(t), offsets)
		if err == nil {
			err = deleted.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	asked("all there", 20, 0)
	deleteTo(4)
	asked("4 deleted", 16, 4)
	closed(t, c)
	asked("closed", 16, 4)
	deleteTo(8)
	asked("8 deleted, 5 of them received", 12, 5)
}
