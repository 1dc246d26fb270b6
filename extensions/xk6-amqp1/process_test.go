package amqp1

import "testing"

// holds makes a consumer that holds messages.
func holds(c *conn, topic, group string, messages int) *consumer {
	in := &intake{credit: newCredit(100, func(uint32) error { return nil })}
	in.credit.arrived(messages)
	return &consumer{conn: c, topic: topic, group: group, intake: in}
}

// What RabbitMQ does not tell is counted over all connections of the process to the same broker.
func TestUnsettledIsOfAllConnections(t *testing.T) {
	one, other := &conn{hosts: []string{"a:5672"}}, &conn{hosts: []string{"b:5672", "a:5672"}}
	s := consumers{all: map[*consumer]bool{}}
	for _, r := range []*consumer{
		holds(one, "orders", "", 25), holds(other, "orders", "", 10),
		holds(one, "others", "", 1), holds(one, "orders", "g", 1),
		holds(&conn{hosts: []string{"c:5672"}}, "orders", "", 1),
		holds(&conn{hosts: []string{"a:5672"}, vhost: "vhost:v"}, "orders", "", 1),
		holds(&conn{hosts: []string{"a:5672"}, mode: pubsub}, "orders", "", 1),
	} {
		s.join(r)
	}
	for _, c := range []*conn{one, other} {
		if got := s.unsettled(c, "orders", ""); got != 35 {
			t.Errorf("%d are unsettled, want 35", got)
		}
	}
	for r := range s.all {
		s.leave(r)
	}
	if got := s.unsettled(one, "orders", ""); got != 0 {
		t.Errorf("%d are unsettled, and nobody is there", got)
	}
}
