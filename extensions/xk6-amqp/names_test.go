package amqp_test

import (
	"net"
	"net/url"
	"strings"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A name that AMQP cannot say is refused, and the connection that others use goes on.
func TestLongNamesAreRejected(t *testing.T) {
	for _, scheme := range []string{"rabbitmq", "rabbitmq-pubsub", "rabbitmq-stream"} {
		t.Run(scheme, func(t *testing.T) {
			r := newRig(t, server(t, scheme))
			var before, after *amqp091.Connection
			r.conn.(driver.Unwrapper).As(&before)
			for _, name := range []string{strings.Repeat("n", 256), strings.Repeat("n", 100_000)} {
				for what, err := range r.verbs(name) {
					if kindOf(r.driver, err) != driver.Rejected {
						t.Errorf("%s with a name of %d bytes: kind %q: %v", what, len(name), kindOf(r.driver, err), err)
					}
				}
			}
			if r.conn.(driver.Unwrapper).As(&after); before != after || before.IsClosed() {
				t.Error("the connection was given up")
			}
		})
	}
}

// verbs has the driver do all that takes a topic's name.
func (r *rig) verbs(topic string) map[string]error {
	r.Helper()
	values := func(scope driver.Scope) driver.Values {
		v, err := r.address.Resolve(scope, nil)
		r.must(err)
		return v
	}
	admin, _ := r.conn.(driver.Admin)
	errs := map[string]error{
		"CreateTopic": admin.CreateTopic(r.context(), driver.TopicSpec{Name: topic, Partitions: 1, Replicas: 1, Options: values(driver.OnTopic)}),
		"DeleteTopic": admin.DeleteTopic(r.context(), topic),
	}
	if r.driver.Name != "rabbitmq-stream" {
		errs["PurgeTopic"] = admin.PurgeTopic(r.context(), topic)
	}
	group := ""
	if r.driver.Features.Groups {
		group = "group"
	}
	if b, ok := r.conn.(driver.Backlogger); ok {
		_, errs["Backlog"] = b.Backlog(r.context(), topic, group)
	}
	_, errs["NewProducer"] = r.conn.NewProducer(r.context(), driver.ProducerConfig{Topic: topic, Window: 1, Options: values(driver.OnProducer)})
	start := driver.StartNew
	if r.driver.Features.Start.Has(driver.StartEarliest) {
		start = driver.StartEarliest
	}
	_, errs["NewConsumer"] = r.conn.NewConsumer(r.context(), driver.ConsumerConfig{Topic: topic, Group: group, Prefetch: 1, Start: start, Options: values(driver.OnConsumer)})
	return errs
}

// Each host of a URL is checked before any is dialed, and one that does not answer is passed over.
func TestOpen_FirstHostDoesNotAnswer_UsesTheNext(t *testing.T) {
	real := server(t, "rabbitmq")
	if real == "" {
		t.Skip("no BROKER_URL_RABBITMQ")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := l.Addr().String()
	_ = l.Close()
	u, err := url.Parse(real)
	if err != nil {
		t.Fatal("BROKER_URL_RABBITMQ is malformed")
	}
	at := func(hosts string) string { return strings.Replace(real, u.Host, hosts, 1) }
	r := newRig(t, at(silent+","+u.Host))
	topic := unique()
	admin, _ := r.conn.(driver.Admin)
	values, err := r.address.Resolve(driver.OnTopic, nil)
	r.must(err)
	r.must(admin.CreateTopic(r.context(), driver.TopicSpec{Name: topic, Partitions: 1, Replicas: 1, Options: values}))
	r.must(admin.DeleteTopic(r.context(), topic))
	for list, want := range map[string]string{
		u.Host + ",127.0.0.1:0":          "host 2",
		u.Host + ",rabbitmq://127.0.0.1": "host 2",
		silent + "," + u.Host + ",":      "host 3",
	} {
		if _, err := driver.ParseURL(at(list), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", list, err, want)
		}
	}
}
