package mongodb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// TestLease leaves a message with a consumer that has room for no other until its lease is over: it is the consumer's no more, which gets it again then.
func TestLease(t *testing.T) {
	t.Parallel()
	s := dial(t, serverURL(t), map[string]any{"lease": "300ms"})
	topic := s.topic(t)
	mustSend(t, s.produce(t, topic), "m")
	r := s.consumeUpTo(t, topic, 1)
	held := receive(t, r, 1, false)
	again := receive(t, r, 1, false)
	if held[0].Attempt < 1 || again[0].Attempt <= held[0].Attempt {
		t.Errorf("attempts %d and %d", held[0].Attempt, again[0].Attempt)
	}
	if err := r.Settle(t.Context(), held, driver.Ack); kindOf(t, err) != driver.Rejected {
		t.Errorf("settled after the lease was over: %v, want kind rejected", err)
	}
	if b := s.backlog(t, topic); b.Messages != 1 {
		t.Errorf("a backlog of %d, and one is with the consumer", b.Messages)
	}
	for r.Settle(t.Context(), again, driver.Ack) != nil { // on a slow machine that lease is over, too
		again = receive(t, r, 1, false)
	}
	if b := s.backlog(t, topic); b.Messages != 0 {
		t.Errorf("a backlog of %d after all was settled", b.Messages)
	}
}

// TestPolls has a server that is no replica set, which has no change streams, and one whose consumers shall not use them.
func TestPolls(t *testing.T) {
	for name, given := range map[string]struct {
		url     string
		options map[string]any
	}{"standalone": {os.Getenv("BROKER_URL_MONGODB_STANDIN_STANDALONE"), nil}, "wait": {serverURL(t), map[string]any{"wait": "poll"}}} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "standalone" {
				t.Skip("part of make test-full")
			}
			if given.url == "" {
				t.Skip("no BROKER_URL_MONGODB_STANDIN_STANDALONE")
			}
			s := dial(t, given.url, given.options)
			topic := s.topic(t)
			p, r := s.produce(t, topic), s.consume(t, topic)
			for i := range 3 {
				body := fmt.Sprint("m", i)
				mustSend(t, p, body)
				got := receive(t, r, 1, false)
				if string(got[0].Body) != body {
					t.Errorf("received %q", got[0].Body)
				}
				settle(t, r, got, driver.Ack)
			}
			server := s.Conn.(driver.Informer).Info().Server
			if alone := strings.Contains(server, "no change streams, so consumers poll"); alone != (name == "standalone") {
				t.Errorf("the server is %q", server)
			}
		})
	}
}

// TestRequeueDelay has a lease so long that waiting for its end would not do.
func TestRequeueDelay(t *testing.T) {
	t.Parallel()
	s := dial(t, serverURL(t), map[string]any{"lease": "1h", "requeueDelay": "300ms"})
	topic := s.topic(t)
	r := s.consume(t, topic)
	mustSend(t, s.produce(t, topic), "m")
	begin := time.Now()
	settle(t, r, receive(t, r, 1, false), driver.Requeue)
	again := receive(t, r, 1, false)
	if took := time.Since(begin); took < 290*time.Millisecond {
		t.Errorf("delivered again after %v, and the delay is 300ms", took)
	}
	settle(t, r, again, driver.Ack)
}

func TestDeadLetter(t *testing.T) {
	plain := dial(t, serverURL(t), nil)
	dead := plain.topic(t)
	s := dial(t, serverURL(t), map[string]any{"deadLetter": dead})
	topic := s.topic(t)
	r, undertaker := s.consume(t, topic), plain.consume(t, dead)
	mustSend(t, s.produce(t, topic), "a", "b")
	all := receive(t, r, 2, false)
	// One is there already, from an attempt that broke between the copy and the deletion.
	var first bson.D
	if err := s.collection(t, topic).FindOne(t.Context(), bson.D{}).Decode(&first); err != nil {
		t.Fatal(err)
	}
	if _, err := s.collection(t, dead).InsertOne(t.Context(), bson.D{first[0]}); err != nil {
		t.Fatal(err)
	}
	settle(t, r, all, driver.Reject)
	got := receive(t, undertaker, 1, false)
	if body := string(got[0].Body); body != "a" && body != "b" || got[0].Attempt != 1 {
		t.Errorf("dead letter %q, attempt %d", body, got[0].Attempt)
	}
	if b, d := s.backlog(t, topic), s.backlog(t, dead); b.Messages != 0 || d.Messages != 2 {
		t.Errorf("a backlog of %d, and %d dead letters", b.Messages, d.Messages)
	}
	if _, err := s.NewConsumer(t.Context(), driver.ConsumerConfig{
		Topic: dead, Prefetch: 1, Start: driver.StartEarliest, Options: values(t, address(t, serverURL(t), map[string]any{"deadLetter": "nowhere"}), driver.OnConsumer),
	}); kindOf(t, err) != driver.Rejected || !strings.Contains(fmt.Sprint(err), `option "deadLetter"`) {
		t.Errorf("dead letters to a topic that is not there: %v", err)
	}
}

// TestMaxAttempts never settles: the message is given up after its second delivery.
func TestMaxAttempts(t *testing.T) {
	t.Parallel()
	plain := dial(t, serverURL(t), nil)
	dead := plain.topic(t)
	s := dial(t, serverURL(t), map[string]any{"deadLetter": dead, "maxAttempts": 2, "lease": "500ms"})
	topic := s.topic(t)
	r := s.consume(t, topic)
	mustSend(t, s.produce(t, topic), "poison")
	if got := receive(t, r, 2, false); got[0].Attempt != 1 || got[1].Attempt != 2 {
		t.Errorf("attempts %d and %d", got[0].Attempt, got[1].Attempt)
	}
	letter := receive(t, plain.consume(t, dead), 1, false)
	if string(letter[0].Body) != "poison" {
		t.Errorf("dead letter %q", letter[0].Body)
	}
	await(t, "the topic is empty", func() bool { return s.backlog(t, topic).Messages == 0 })
}

// TestNeverReceived closes a consumer that has messages waiting in it: they were not delivered.
func TestNeverReceived(t *testing.T) {
	s := dial(t, serverURL(t), nil)
	topic := s.topic(t)
	r := s.consume(t, topic)
	mustSend(t, s.produce(t, topic), "a", "b", "c")
	receive(t, r, 1, false)
	await(t, "all are with the consumer", func() bool { return s.backlog(t, topic).Undelivered == 0 })
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b := s.backlog(t, topic); b.Messages != 3 || b.Undelivered != 2 {
		t.Errorf("a backlog of %+v, want 3 of which 2 were not delivered", b)
	}
	attempts := map[int32]int{}
	for _, m := range receive(t, s.consume(t, topic), 3, false) {
		attempts[m.Attempt]++
	}
	if attempts[1] != 2 || attempts[2] != 1 {
		t.Errorf("attempts %v", attempts)
	}
}

// TestFateOfEach has a collection refuse some of the messages of one command.
func TestFateOfEach(t *testing.T) {
	s := dial(t, serverURL(t), nil)
	topic := s.topic(t)
	unique := mongo.IndexModel{Keys: bson.D{{Key: "body", Value: 1}}, Options: options.Index().SetUnique(true)}
	if _, err := s.collection(t, topic).Indexes().CreateOne(t.Context(), unique); err != nil {
		t.Fatal(err)
	}
	errs := send(t, s.produce(t, topic), "a", "b", "a", "c")
	var failed int
	for i, err := range errs {
		if err != nil {
			failed++
			if i%2 != 0 || kindOf(t, err) != driver.Rejected {
				t.Errorf("message %d: %v", i, err)
			}
		}
	}
	if b := s.backlog(t, topic); failed != 1 || b.Messages != 3 {
		t.Errorf("%d of 4 failed, and %d are there: %v", failed, b.Messages, errs)
	}
}

// TestOtherPrograms inserts and reads with the client library.
func TestOtherPrograms(t *testing.T) {
	s := dial(t, serverURL(t), nil)
	topic := s.topic(t)
	r, p, c := s.consume(t, topic), s.produce(t, topic), s.collection(t, topic)
	if _, err := c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "mine"}, {Key: "body", Value: "text"}, {Key: "key", Value: 42}, {Key: "nextDelivery", Value: time.Unix(0, 0)}}); err != nil {
		t.Fatal(err)
	}
	got := receive(t, r, 1, false)
	if m := got[0]; string(m.Body) != "text" || string(m.Key) != `{"$numberInt":"42"}` || m.Attempt != 1 || m.Headers != nil {
		t.Errorf("came as body %q, key %q, attempt %d, headers %s", m.Body, m.Key, m.Attempt, m.Headers)
	}
	settle(t, r, got, driver.Ack)
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustSend(t, p, "ours")
	var ours struct {
		Body     []byte
		Key      *bson.RawValue
		Attempts int
		Due      time.Time `bson:"nextDelivery"`
	}
	if err := c.FindOne(t.Context(), bson.D{}).Decode(&ours); err != nil || string(ours.Body) != "ours" || ours.Key != nil || ours.Attempts != 0 || time.Since(ours.Due).Abs() > time.Hour {
		t.Errorf("the document is %+v, %v", ours, err)
	}
}

// TestHeaders keeps their order, names that come twice, and bytes that are no text.
func TestHeaders(t *testing.T) {
	s := dial(t, serverURL(t), nil)
	topic := s.topic(t)
	p := s.produce(t, topic)
	b := driver.Batch{
		{Headers: []driver.Header{{Name: "z", Value: []byte("1")}, {Name: "a.$b", Value: []byte("\xff\x00")}, {Name: "z", Value: []byte("é")}, {Name: "", Value: nil}}},
		{Headers: []driver.Header{{Name: "\xff"}}},
		{Headers: []driver.Header{{Name: "large", Value: make([]byte, 16<<20)}}},
	}
	kinds := make(chan string, len(b))
	p.Send(t.Context(), b, func(i int, err error) { kinds <- fmt.Sprint(i, kindOf(t, err)) })
	got := map[string]bool{<-kinds: true, <-kinds: true, <-kinds: true}
	if !got["0"] || !got["1rejected"] || !got["2rejected"] {
		t.Errorf("%v", got)
	}
	m := receive(t, s.consume(t, topic), 1, false)[0]
	if text := fmt.Sprintf("%q", m.Headers); text != `[{"z" "1"} {"a.$b" "\xff\x00"} {"z" "é"} {"" ""}]` {
		t.Error(text)
	}
}

// TestCreateTopic finds collections that are there.
func TestCreateTopic(t *testing.T) {
	s := dial(t, serverURL(t), nil)
	topic := s.topic(t)
	s.create(t, topic)
	info, err := s.Conn.(driver.TopicDescriber).DescribeTopic(t.Context(), topic)
	if err != nil || info.Replicas < 1 {
		t.Errorf("described as %+v, %v", info, err)
	}
	spec := driver.TopicSpec{Name: name(t) + "-x", Partitions: 1, Replicas: 1}
	backwards := mongo.IndexModel{Keys: bson.D{{Key: "nextDelivery", Value: -1}}, Options: options.Index().SetName("nextDelivery_1")}
	if _, err := s.collection(t, spec.Name).Indexes().CreateOne(t.Context(), backwards); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.collection(t, spec.Name).Drop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	// The stand-in does not list a collection that an index made.
	if _, err := s.collection(t, spec.Name).InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	want := "has an index nextDelivery_1 of"
	if err := s.Conn.(driver.Admin).CreateTopic(t.Context(), spec); kindOf(t, err) != driver.Rejected || !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("an index that goes the other way: %v", err)
	}
	if _, err := s.NewProducer(t.Context(), driver.ProducerConfig{Topic: spec.Name, Window: 1, Options: values(t, s.a, driver.OnProducer)}); kindOf(t, err) != driver.Rejected {
		t.Errorf("a producer of what is no topic: %v", err)
	}
	if err := s.Conn.(driver.Admin).DeleteTopic(t.Context(), spec.Name); kindOf(t, err) != driver.Rejected {
		t.Errorf("what is no topic was deleted: %v", err)
	}
	for _, bad := range []string{"", "a$b", "system.x", strings.Repeat("x", 251)} {
		if err := s.Conn.(driver.Admin).CreateTopic(t.Context(), driver.TopicSpec{Name: bad}); !errors.As(err, new(*driver.OptionError)) {
			t.Errorf("the name %.20q: %v", bad, err)
		}
	}
}

// TestOtherCollections has one without the index: createTopic makes that, and nobody sends before.
func TestOtherCollections(t *testing.T) {
	s := dial(t, serverURL(t), nil)
	topic := name(t)
	if _, err := s.collection(t, topic).InsertOne(t.Context(), bson.D{{Key: "nextDelivery", Value: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.remove(t, topic) })
	produce := func() (driver.Producer, error) {
		return s.NewProducer(context.Background(), driver.ProducerConfig{Topic: topic, Window: 1, Options: values(t, s.a, driver.OnProducer)})
	}
	if _, err := produce(); kindOf(t, err) != driver.Rejected || !strings.Contains(fmt.Sprint(err), "has no index that begins with nextDelivery") {
		t.Errorf("no index: %v", err)
	}
	s.create(t, topic)
	p, err := produce()
	if err != nil {
		t.Fatal(err)
	}
	closing(t, p)
}

// TestBadOptions are told with what they may be.
func TestBadOptions(t *testing.T) {
	url := serverURL(t)
	s := dial(t, url, nil)
	topic := s.topic(t)
	for option, want := range map[string]string{"w=most": `"most" is not majority, or a number from 0 to 50`, "w=51": "from 0 to 50", "w=-1": "from 0 to 50", "w=0&journal=true": "0 waits for no answer"} {
		a := address(t, url+"&"+option, nil)
		_, err := s.NewProducer(t.Context(), driver.ProducerConfig{Topic: topic, Window: 1, Options: values(t, a, driver.OnProducer)})
		if kindOf(t, err) != driver.Rejected || !strings.Contains(fmt.Sprint(err), want) || !strings.Contains(fmt.Sprint(err), `option "w"`) {
			t.Errorf("%s: %v", option, err)
		}
	}
	for options, want := range map[string]string{
		"authMechanism=PLAIN":        `option "authMechanism": PLAIN needs a user`,
		"authMechanism=MONGODB-X509": `by the certificate of the option "tlsCert"`,
		"user=me":                    `option "password": user "me" needs one`,
	} {
		_, err := address(t, url+"&"+options, nil).Open(t.Context(), "test")
		if kindOf(t, err) != driver.Rejected || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v", options, err)
		}
	}
	if _, err := address(t, "mongodb://127.0.0.1:1/a%24b", nil).Open(t.Context(), "test"); err == nil || !strings.Contains(err.Error(), `"a$b" is no name of a database`) {
		t.Errorf("a database's name: %v", err)
	}
	if _, err := address(t, "mongodb://a,b/?directConnection=true", nil).Open(t.Context(), "test"); kindOf(t, err) != driver.Rejected {
		t.Errorf("a direct connection to two: %v", err)
	}
}
