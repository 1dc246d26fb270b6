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
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var publish = []test{
	{"batches of one, two and a thousand", func(k *kit) {
		f := k.flow()
		for _, size := range []int{1, 2, 1000} {
			f.r.finishes(f.send(fmt.Sprint("batch", size), size))
		}
		f.r.nothing(quiet())
	}},
	{"many senders at once", func(k *kit) {
		f := k.flow()
		var all driver.Batch
		var running sync.WaitGroup
		for i := range 8 {
			b := k.messages(fmt.Sprint("sender", i), 250)
			all = append(all, b...)
			running.Go(func() { f.p.various(b) })
		}
		running.Wait()
		f.p.succeed(f.p.sent...)
		f.r.finishes(all)
	}},
	{"body", func(k *kit) {
		k.claims(!k.Numbers, "bodies of any bytes")
		b := driver.Batch{{Body: allBytes()}, {}}
		for _, text := range []string{"\r\n.\r\n\r\n", "\x00", "\xff\xfe", "+OK ÿ"} {
			b = append(b, driver.Message{Body: []byte(text)})
		}
		k.echo(b)
	}},
	{"tombstone", func(k *kit) {
		k.claims(k.f.Tombstones, "messages without a body")
		got := k.echo(driver.Batch{{Key: []byte("k"), Body: []byte{}}, {Key: []byte("k")}})
		k.check(got[0].Body != nil && got[1].Body == nil,
			"an empty body came as %#v, and no body as %#v", got[0].Body, got[1].Body)
	}},
	{"key", func(k *kit) {
		b := k.messages("key", 3)
		b[0].Key, b[1].Key = []byte("order/42=a b"), []byte("0")
		k.echo(b)
	}},
	{"headers", func(k *kit) {
		k.echoHeaders([]driver.Header{
			{Name: "Mixed-Case", Value: []byte("text with spaces")},
			{Name: "empty", Value: nil},
			{Name: "long", Value: bytes.Repeat([]byte("x"), 200)},
			{Name: "trace-id", Value: []byte("a/b=c+d==")},
		})
	}},
	{"headers of any bytes", func(k *kit) {
		k.claims(k.f.Headers && k.HeaderBytes, "headers of any bytes")
		k.echoHeaders([]driver.Header{{Name: "bytes", Value: allBytes()}, {Name: "line", Value: []byte("a\r\nb: c")}})
	}},
	// Sends a message with all properties that the driver has options for, and one without.
	{"properties", func(k *kit) {
		examples := map[driver.Type]any{
			driver.String: "of the message", driver.Duration: time.Hour, driver.Bool: true,
			driver.List: []string{"a", "b"},
			driver.Map:  map[string]any{"a": "b", "c": int64(1), "d": true},
		}
		want := driver.Values{}
		for _, o := range k.d.Options {
			if o.Scope&driver.OnMessage == 0 || o.Name == partitionProperty || o.SendOnly {
				continue
			}
			want[o.Name] = examples[o.Type]
			switch o.Type {
			case driver.Int, driver.Size:
				want[o.Name] = max(o.Min, 3)
			case driver.Enum:
				want[o.Name] = o.Allowed[len(o.Allowed)-1]
			}
		}
		k.claims(len(want) > 0, "properties of messages")
		got := k.echo(driver.Batch{{Body: []byte("with"), Properties: want}, {Body: []byte("without")}})
		k.check(reflect.DeepEqual(got[0].Properties, want) && len(got[1].Properties) == 0,
			"properties %v came as %v, and none as %v", want, got[0].Properties, got[1].Properties)
	}},
	{"partition of choice", chosenPartition},
	{"receipts", receiptPlaces},
	{"largest body", func(k *kit) {
		k.claims(!k.Numbers, "bodies of any bytes")
		const mebi = 1 << 20 // more shows nothing but the machine's speed
		size := min(cmp.Or(k.f.MaxMessageBytes, mebi), mebi)
		k.echo(driver.Batch{{Body: bytes.Repeat([]byte("0123456789abcde\n"), mebi/16)[:size]}})
	}},
	{"body too large", func(k *kit) {
		k.claims(k.f.MaxMessageBytes > 0, "a limit of the message's size")
		k.needs(k.f.MaxMessageBytes <= 64<<20, "a limit that this test can send")
		f := k.flow()
		k.kind(f.p.try(driver.Batch{{Body: make([]byte, k.f.MaxMessageBytes+1)}}), driver.Rejected)
		f.r.finishes(f.send("after", 1))
	}},
	// Changes each body in its Done. The received messages must not change.
	{"nothing is kept after done", func(k *kit) {
		f := k.flow()
		b := k.messages("kept", 200)
		var all sync.WaitGroup
		all.Add(len(b))
		f.p.Send(k.Context(), b, func(i int, err error) {
			k.check(err == nil, "Send: %v", err)
			clear(b[i].Body)
			all.Done()
		})
		all.Wait()
		f.r.finishes(k.messages("kept", 200))
	}},
	{"send returns before the answer", func(k *kit) {
		k.claims(k.f.Async, "Send returns before the broker's answer")
		url, freeze := k.freezer()
		p := k.lone(url)
		p.send(k.messages("before", 1))
		thaw := freeze()
		p.various(k.messages("frozen", 500))
		thaw()
		p.succeed(p.sent...)
	}},
	{"send returns after the answer", func(k *kit) {
		k.claims(!k.f.Async, "Send returns after the broker's answer")
		p := k.lone(k.URL)
		for range 20 {
			b := k.messages("sync", 10)
			calls, _ := p.hand(b).state()
			k.must(calls == len(b), "Send returned after %d of %d messages, and Async is not claimed", calls, len(b))
		}
	}},
	// A message that is handed over at once needs no context and may succeed.
	{"context that has ended", func(k *kit) {
		p := k.lone(k.URL)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for _, err := range p.start(ctx, k.messages("ended", 10)).wait() {
			k.kind(err, driver.Canceled)
		}
		p.send(k.messages("after", 1))
	}},
	{"topic that does not exist", func(k *kit) {
		c, _ := k.admin()
		config := driver.ProducerConfig{Topic: unique(), Window: window, Options: k.options(driver.OnProducer)}
		p, err := c.NewProducer(k.Context(), config)
		if err == nil {
			defer k.close(p)
			err = (&sender{Producer: p, kit: k}).try(k.messages("nowhere", 1))
		}
		k.kind(err, driver.NotFound, driver.Rejected)
	}},
	// Asks about a topic that the driver made, about the same one as if another program had made
	// it, and about one that does not exist. A producer may be the Prover.
	{"what a confirmation proves", func(k *kit) {
		f := k.flow()
		prover, ok := f.conn.(driver.Prover)
		if !ok {
			prover, ok = f.p.Producer.(driver.Prover)
		}
		k.claims(ok, "options or topics decide what a confirmation proves")
		config := driver.ProducerConfig{Topic: f.topic, Window: 1, Options: k.options(driver.OnProducer)}
		missing := config
		missing.Topic = unique()
		prove := func(config driver.ProducerConfig, created *driver.TopicSpec) {
			first := prover.Proof(k.Context(), config, created)
			again := prover.Proof(k.Context(), config, created)
			k.check(first.Confirm <= k.f.Confirm && first.How != "" && first == again,
				"Proof: %+v and the second time %+v; the driver claims %v", first, again, k.f.Confirm)
		}
		prove(config, &driver.TopicSpec{Name: f.topic, Partitions: 1, Replicas: 1, Options: k.options(driver.OnTopic)})
		prove(config, nil)
		prove(missing, nil)
	}},
	// Makes a topic with two partitions, if the broker has partitions, and the defaults.
	{"what a topic is", func(k *kit) {
		c := k.open()
		describer, ok := c.(driver.TopicDescriber)
		k.claims(ok, "the broker describes topics")
		info, err := describer.DescribeTopic(k.Context(), k.topic(c, 2))
		k.noError("DescribeTopic", err)
		own := k.Topic == nil // a topic of the harness has other options
		described := (info.Partitions == 0 || info.Partitions == 2) && info.Replicas == 1
		k.check(described || !own, "a topic of 2 partitions and 1 replica is %+v", info)
		options := k.options(driver.OnTopic)
		for name, value := range info.Options {
			o, _ := k.d.Option(name)
			other := own && o.Type == driver.Enum && options[name] != value
			want, ok := options[name]
			k.check(ok && reflect.TypeOf(want) == reflect.TypeOf(value) && !other,
				"option %q: %T %v, want %T %v", name, value, value, want, want)
		}
		_, err = describer.DescribeTopic(k.Context(), unique())
		k.kind(err, driver.NotFound)
	}},
}

// echo sends messages one after the other and compares body and key of the messages received. Keys
// are sent to any broker, as scripts do. A broker that does not keep them delivers none.
func (k *kit) echo(b driver.Batch) (got driver.Batch) {
	k.Helper()
	f := k.flow()
	for i, m := range b {
		f.p.send(b[i : i+1])
		got = append(got, f.r.finish(1)...)
		if !k.f.Key {
			m.Key = nil
		}
		k.check(bytes.Equal(got[i].Body, m.Body) && bytes.Equal(got[i].Key, m.Key),
			"%.40q with key %q came as %.40q with key %q", m.Body, m.Key, got[i].Body, got[i].Key)
	}
	return got
}

// allBytes returns a slice with each byte once.
func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// echoHeaders sends headers in the order of their names. Some brokers choose another order.
func (k *kit) echoHeaders(want []driver.Header) {
	b := driver.Batch{{Body: []byte("body"), Headers: want}}
	if !k.f.Headers {
		k.is(k.lone(k.URL).try(b), errors.ErrUnsupported)
		return
	}
	got := slices.Clone(k.echo(b)[0].Headers)
	slices.SortFunc(got, func(a, b driver.Header) int { return strings.Compare(a.Name, b.Name) })
	equal := func(a, b driver.Header) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }
	k.check(slices.EqualFunc(got, want, equal), "headers %.200q came as %.200q", want, got)
}

// partitionProperty is the option that chooses a message's partition.
const partitionProperty = "partition"
