package amqp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A message's own priority goes before its producer's, and the queue keeps to both.
func TestPrioritiesOfMessages(t *testing.T) {
	r := newRig(t, server(t, "rabbitmq"))
	topic := r.topic(map[string]any{"maxPriority": 5})
	p := r.producer(topic, 10, map[string]any{"priority": 2, "contentType": "text/plain"})
	b := driver.Batch{text("its producer's"), text("lowest"), text("highest")}
	b[1].Properties = driver.Values{"priority": int64(1)}
	b[2].Properties = driver.Values{"priority": int64(5), "contentType": ""}
	r.kinds("", r.send(p, b...)...)
	c := r.consumer(topic, "", 10)
	var got []string
	for _, m := range r.take(c, 3) {
		got = append(got, fmt.Sprint(string(m.Body), " ", m.Properties))
	}
	want := "[highest map[priority:5] its producer's map[contentType:text/plain priority:2] lowest map[contentType:text/plain priority:1]]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAMessageExpires(t *testing.T) {
	r := newRig(t, server(t, "rabbitmq"))
	dead := unique()
	topic := r.topic(map[string]any{"deadLetterQueue": dead})
	t.Cleanup(func() { r.delete(dead) })
	p := r.producer(topic, 10, nil)
	b := driver.Batch{text("brief")}
	b[0].Properties = driver.Values{"expiration": 50 * time.Millisecond}
	r.kinds("", r.send(p, b...)...)
	if got := r.take(r.consumer(dead, "", 10), 1); string(got[0].Body) != "brief" {
		t.Errorf("%q has expired", got[0].Body)
	}
}
