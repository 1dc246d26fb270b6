package drivertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var publish = []test{
	{"batches of one, two and a thousand", batches},
	{"many senders at once", senders},
	{"body", body},
	{"tombstone", tombstone},
	{"key", key},
	{"headers", headers},
	{"headers of any bytes", headerBytes},
	{"properties", properties},
	{"partition of choice", chosenPartition},
	{"receipts", receiptsTell},
	{"largest body", largest},
	{"body too large", tooLarge},
	{"nothing is kept after done", nothingKept},
	{"send returns before the answer", async},
	{"send returns after the answer", answered},
	{"context that has ended", endedContext},
	{"topic that does not exist", missingTopic},
	{"what a confirmation proves", proof},
	{"what a topic is", described},
}

func batches(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.topic(t, c)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	for _, size := range []int{1, 2, 1000} {
		b := messages(fmt.Sprint("of", size), size)
		p.send(t, b)
		same(t, fmt.Sprintf("batch of %d", size), bodies(r.finish(t, size)), bodies(b))
	}
	r.nothing(t, "all has been received")
}

func senders(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.topic(t, c)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	const each = 250
	var all [8]driver.Batch
	var sent [8][]*receipts
	var running sync.WaitGroup
	ctx := k.context(t)
	for i := range all {
		all[i] = messages(fmt.Sprint("sender", i), each)
		running.Go(func() {
			for rest, size := all[i], 1; len(rest) > 0; size = size%7 + 1 {
				n := min(size, len(rest))
				r := p.receipts(n)
				sent[i] = append(sent[i], r)
				p.Send(ctx, rest[:n], r.done)
				rest = rest[n:]
			}
		})
	}
	k.within(t, "one of several Send", running.Wait)
	for _, r := range slices.Concat(sent[:]...) {
		p.wait(t, r)
		if errs := r.failed(); len(errs) > 0 {
			t.Fatalf("Send: %v", errs[0])
		}
	}
	got := r.finish(t, len(all)*each)
	same(t, "sent by several goroutines", bodies(got), bodies(all[:]...))
}

// echo sends one message and returns what came of it.
func echo(t *testing.T, k *kit, b driver.Batch) driver.Batch {
	t.Helper()
	c := k.open(t)
	topic := k.topic(t, c)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	var got driver.Batch
	for i := range b { // one after the other, so that any driver has them in order
		p.send(t, b[i:i+1])
		got = append(got, r.finish(t, 1)...)
	}
	return got
}

func every() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func body(t *testing.T, k *kit) {
	k.bytes(t)
	b := driver.Batch{
		{Body: every()}, {Body: []byte("\r\n.\r\n\r\n")}, {Body: []byte{0}}, {Body: []byte{0xff, 0xfe}}, {Body: []byte("+OK ÿ")}, {},
	}
	for i, m := range echo(t, k, b) {
		if !bytes.Equal(m.Body, b[i].Body) {
			t.Errorf("body %.40q came as %.40q", b[i].Body, m.Body)
		}
		if !k.f.Key && m.Key != nil {
			t.Errorf("a key %q came, and keys are not claimed", m.Key)
		}
	}
}

func tombstone(t *testing.T, k *kit) {
	claimed(t, k.f.Tombstones, "messages without a body")
	for i, m := range echo(t, k, driver.Batch{{Key: []byte("k"), Body: []byte{}}, {Key: []byte("k")}}) {
		if none := i == 1; len(m.Body) > 0 || none != (m.Body == nil) {
			t.Errorf("a message without a body: %v: came with %#v", none, m.Body)
		}
	}
}

// key is sent by scripts whatever the broker: where keys are not kept it changes nothing.
func key(t *testing.T, k *kit) {
	b := driver.Batch{{Key: []byte("order/42=a b"), Body: []byte("a")}, {Key: []byte("0"), Body: []byte("b")}, {Body: []byte("c")}}
	for i, m := range echo(t, k, b) {
		want := b[i].Key
		if !k.f.Key {
			want = nil
		}
		if !bytes.Equal(m.Key, want) || !bytes.Equal(m.Body, b[i].Body) {
			t.Errorf("key %q of %q came as %q of %q", b[i].Key, b[i].Body, m.Key, m.Body)
		}
	}
}

// headers come in the order of the wire, which some brokers choose: they are compared by name.
func headers(t *testing.T, k *kit) {
	k.echoHeaders(t, []driver.Header{
		{Name: "trace-id", Value: []byte("a/b=c+d==")},
		{Name: "Mixed-Case", Value: []byte("text with spaces")},
		{Name: "empty", Value: nil},
		{Name: "long", Value: bytes.Repeat([]byte("x"), 200)},
	})
}

func headerBytes(t *testing.T, k *kit) {
	if k.f.Headers && !k.HeaderBytes {
		t.Skip("not claimed: headers of any bytes")
	}
	claimed(t, k.f.Headers, "headers")
	k.echoHeaders(t, []driver.Header{{Name: "bytes", Value: every()}, {Name: "line", Value: []byte("a\r\nb: c")}})
}

func (k *kit) echoHeaders(t *testing.T, want []driver.Header) {
	t.Helper()
	m := driver.Message{Body: []byte("body"), Headers: want}
	if !k.f.Headers {
		c := k.open(t)
		errs := k.producer(t, c, k.topic(t, c)).try(t, driver.Batch{m})
		unsupported(t, "headers", errors.Join(errs...))
		return
	}
	got := slices.Clone(echo(t, k, driver.Batch{m})[0].Headers)
	byName := func(a, b driver.Header) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(got, byName)
	want = slices.SortedFunc(slices.Values(want), byName)
	if !slices.EqualFunc(got, want, func(a, b driver.Header) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }) {
		t.Errorf("headers %.200q came as %.200q", want, got)
	}
}

// partitionProperty is the option for the partition that a message is sent to. It comes as Message.Partition.
const partitionProperty = "partition"

// properties are those that the driver has options for: what a message is given is what comes, and of what it is not given the producer's.
func properties(t *testing.T, k *kit) {
	want := driver.Values{}
	for _, o := range k.d.Options {
		if o.Scope&driver.OnMessage == 0 || o.Name == partitionProperty || o.SendOnly {
			continue
		}
		switch o.Type {
		case driver.String:
			want[o.Name] = "of the message"
		case driver.Int, driver.Size:
			want[o.Name] = max(o.Min, 3)
		case driver.Duration:
			want[o.Name] = time.Hour
		case driver.Bool:
			want[o.Name] = true
		case driver.Enum:
			want[o.Name] = o.Allowed[len(o.Allowed)-1]
		case driver.List:
			want[o.Name] = []string{"a", "b"}
		case driver.Map:
			want[o.Name] = map[string]any{"a": "b", "c": int64(1), "d": true}
		case driver.Items:
			want[o.Name] = []any{"a", "b"}
		}
	}
	claimed(t, len(want) > 0, "properties of messages")
	got := echo(t, k, driver.Batch{{Body: []byte("with"), Properties: want}, {Body: []byte("without")}})
	if !reflect.DeepEqual(got[0].Properties, want) {
		t.Errorf("%v came as %v", want, got[0].Properties)
	}
	if len(got[1].Properties) > 0 {
		t.Errorf("%v came of nothing", got[1].Properties)
	}
}

// largest stops at 1 MiB: more shows nothing but the machine's patience.
func largest(t *testing.T, k *kit) {
	k.bytes(t)
	const mebi = 1 << 20
	b := messages("large", 1)
	b[0].Body = bytes.Repeat([]byte("0123456789abcde\n"), mebi/16)[:min(cmp.Or(k.f.MaxMessageBytes, mebi), mebi)]
	if got := echo(t, k, b); !bytes.Equal(got[0].Body, b[0].Body) {
		t.Errorf("a body of %d bytes came as another of %d", len(b[0].Body), len(got[0].Body))
	}
}

func tooLarge(t *testing.T, k *kit) {
	claimed(t, k.f.MaxMessageBytes > 0, "a limit of the message's size")
	if k.f.MaxMessageBytes > 64<<20 {
		notProven(t, "the limit is more than this test should send")
	}
	c := k.open(t)
	topic := k.topic(t, c)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	errs := p.try(t, driver.Batch{{Body: make([]byte, k.f.MaxMessageBytes+1)}})
	if !k.all(errs, driver.Rejected) {
		t.Errorf("a message larger than MaxMessageBytes: %v, want an error of kind rejected", errs)
	}
	p.send(t, messages("after", 1))
	same(t, "sent after one that was too large", bodies(r.finish(t, 1)), []string{"after-0000"})
}

// nothingKept changes what was sent as soon as done is called: what is received must not change with it.
func nothingKept(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.topic(t, c)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	b := messages("kept", 200)
	want := bodies(b)
	p.send(t, b)
	for i := range b {
		clear(b[i].Body)
	}
	same(t, "changed after done", bodies(r.finish(t, len(b))), want)
}

func async(t *testing.T, k *kit) {
	claimed(t, k.f.Async, "Send returns before the broker's answer")
	url, freeze := k.freezer(t)
	c := k.openAt(t, url)
	p := k.producer(t, c, k.topic(t, k.open(t)))
	p.send(t, messages("before", 1))
	thaw := freeze()
	var sent []*receipts
	func() {
		defer thaw()
		b := messages("frozen", 500)
		for i := range b {
			sent = append(sent, p.hand(t, b[i:i+1]))
		}
	}()
	for _, r := range sent {
		p.wait(t, r)
		if errs := r.failed(); len(errs) > 0 {
			t.Fatalf("Send, while the server was frozen for a moment: %v", errs[0])
		}
	}
}

func answered(t *testing.T, k *kit) {
	if k.f.Async {
		t.Skip("not claimed: Send returns after the broker's answer")
	}
	c := k.open(t)
	p := k.producer(t, c, k.topic(t, c))
	for range 20 {
		b := messages("sync", 10)
		if r := p.hand(t, b); r.called() < len(b) {
			t.Fatalf("Send returned with done called for %d of %d messages, and Async is not claimed", r.called(), len(b))
		}
	}
}

// endedContext does not ask that anything fails: what is handed over at once needs no context.
func endedContext(t *testing.T, k *kit) {
	c := k.open(t)
	p := k.producer(t, c, k.topic(t, c))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	sent, back := p.handing(ctx, messages("ended", 10))
	k.within(t, "Send", func() { <-back })
	p.wait(t, sent)
	if errs := sent.failed(); len(errs) > 0 && !k.all(errs, driver.Canceled) {
		t.Errorf("Send with a context that has ended: %v", errs[0])
	}
	p.send(t, messages("after", 1))
}

func missingTopic(t *testing.T, k *kit) {
	c := k.open(t)
	if _, ok := c.(driver.Admin); !ok {
		t.Skip("not claimed: topics are managed")
	}
	config := driver.ProducerConfig{Topic: unique(), Window: window, Options: k.options(t, driver.OnProducer)}
	s := &sender{k: k}
	var err error
	k.within(t, "NewProducer", func() { s.Producer, err = c.NewProducer(k.context(t), config) })
	if err == nil {
		defer k.close(t, "producer", s)
		err = errors.Join(s.try(t, messages("nowhere", 1))...)
	}
	if kind := k.d.KindOf(err); err == nil || kind != driver.NotFound && kind != driver.Rejected {
		t.Errorf("sent to a topic that does not exist: %v, want an error of kind not_found or rejected", err)
	}
}

// proof asks of a topic that the driver made, of the same one as if others had made it, and of one that is not there. Where producers find it out
// for themselves one of them is asked.
func proof(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.topic(t, c)
	prover, ok := c.(driver.Prover)
	if !ok {
		prover, ok = k.producer(t, c, topic).Producer.(driver.Prover)
	}
	claimed(t, ok, "options or topics decide what a confirmation proves")
	config := driver.ProducerConfig{Topic: topic, Window: 1, Options: k.options(t, driver.OnProducer)}
	created := &driver.TopicSpec{Name: config.Topic, Partitions: 1, Replicas: 1, Options: k.options(t, driver.OnTopic)}
	missing := config
	missing.Topic = unique()
	for what, ask := range map[string]func() driver.Proof{
		"created here": func() driver.Proof { return prover.Proof(k.context(t), config, created) },
		"found":        func() driver.Proof { return prover.Proof(k.context(t), config, nil) },
		"not there":    func() driver.Proof { return prover.Proof(k.context(t), missing, nil) },
	} {
		var got, again driver.Proof
		k.within(t, "Proof", func() { got, again = ask(), ask() })
		if got.Confirm > k.f.Confirm {
			t.Errorf("a topic that was %s: %v is proven, and Features.Confirm is at most %v", what, got.Confirm, k.f.Confirm)
		}
		if got.How == "" || got != again {
			t.Errorf("a topic that was %s: %q, and asked again %q", what, got.How, again.How)
		}
	}
}

// described makes a topic with two partitions, where there are any, and the defaults of all else.
func described(t *testing.T, k *kit) {
	c := k.open(t)
	describer, ok := c.(driver.TopicDescriber)
	claimed(t, ok, "the broker says what a topic is")
	topic := k.partitioned(t, c, 2)
	var got driver.TopicInfo
	var err error
	k.within(t, "DescribeTopic", func() { got, err = describer.DescribeTopic(k.context(t), topic) })
	own := k.Topic == nil // else it was made as the harness wants it
	if err != nil || own && (got.Partitions != 0 && got.Partitions != 2 || got.Replicas != 1) {
		t.Fatalf("a topic of 2 partitions and 1 replica is %+v, %v", got, err)
	}
	asked := k.options(t, driver.OnTopic)
	for name, value := range got.Options {
		want, known := asked[name]
		if !known || fmt.Sprintf("%T", want) != fmt.Sprintf("%T", value) {
			t.Errorf("option %q: a %T, want a %T", name, value, want)
		}
		if of, _ := k.d.Option(name); own && of.Type == driver.Enum && want != value {
			t.Errorf("option %q: %v, asked for %v", name, value, want)
		}
	}
	k.within(t, "DescribeTopic", func() { _, err = describer.DescribeTopic(k.context(t), unique()) })
	if kind := k.d.KindOf(err); err == nil || kind != driver.NotFound {
		t.Errorf("a topic that is not there: %v, want an error of kind not_found", err)
	}
}
