package drivertest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"sync"

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
	{"receipts", receiptPlaces},
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

func batches(k *kit) {
	f := k.flow()
	for _, size := range []int{1, 2, 1000} {
		f.r.finishes(f.send(fmt.Sprint("batch", size), size))
	}
	f.r.nothing(quiet())
}

func senders(k *kit) {
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
}

func largest(k *kit) {
	k.claims(!k.Numbers, "bodies of any bytes")
	const mebi = 1 << 20 // more shows nothing but the machine's speed
	size := min(cmp.Or(k.f.MaxMessageBytes, mebi), mebi)
	b := driver.Batch{{Body: bytes.Repeat([]byte("0123456789abcde\n"), mebi/16)[:size]}}
	if got := k.echo(b); !bytes.Equal(got[0].Body, b[0].Body) {
		k.Errorf("a body of %d bytes came as another of %d", size, len(got[0].Body))
	}
}

func tooLarge(k *kit) {
	k.claims(k.f.MaxMessageBytes > 0, "a limit of the message's size")
	if k.f.MaxMessageBytes > 64<<20 {
		k.notProven("the limit is more than this test can send")
	}
	f := k.flow()
	k.kind(f.p.try(driver.Batch{{Body: make([]byte, k.f.MaxMessageBytes+1)}}), driver.Rejected)
	f.r.finishes(f.send("after", 1))
}

// nothingKept changes each body in its Done. The received messages must not change.
func nothingKept(k *kit) {
	f := k.flow()
	b := k.messages("kept", 200)
	var all sync.WaitGroup
	all.Add(len(b))
	f.p.Send(k.Context(), b, func(i int, err error) {
		if err != nil {
			k.Errorf("Send: %v", err)
		}
		clear(b[i].Body)
		all.Done()
	})
	all.Wait()
	f.r.finishes(k.messages("kept", 200))
}

func async(k *kit) {
	k.claims(k.f.Async, "Send returns before the broker's answer")
	url, freeze := k.freezer()
	p := k.lone(url)
	p.send(k.messages("before", 1))
	thaw := freeze()
	p.various(k.messages("frozen", 500))
	thaw()
	p.succeed(p.sent...)
}

func answered(k *kit) {
	k.claims(!k.f.Async, "Send returns after the broker's answer")
	p := k.lone(k.URL)
	for range 20 {
		b := k.messages("sync", 10)
		if called, _ := p.hand(b).state(); called < len(b) {
			k.Fatalf("Send returned after done of %d of %d messages, and Async is not claimed", called, len(b))
		}
	}
}

// endedContext does not ask for an error: a message that is handed over at once needs no context.
func endedContext(k *kit) {
	p := k.lone(k.URL)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range p.start(ctx, k.messages("ended", 10)).wait() {
		k.kind(err, driver.Canceled)
	}
	p.send(k.messages("after", 1))
}

func missingTopic(k *kit) {
	c, _ := k.admin()
	s := &sender{kit: k}
	config := driver.ProducerConfig{Topic: unique(), Window: window, Options: k.options(driver.OnProducer)}
	var err error
	if s.Producer, err = c.NewProducer(k.Context(), config); err == nil {
		defer k.close(s)
		err = s.try(k.messages("nowhere", 1))
	}
	k.kind(err, driver.NotFound, driver.Rejected)
}

// proof asks about a topic that the driver made, about the same one as if another program had made
// it, and about one that does not exist. A producer may be the Prover.
func proof(k *kit) {
	f := k.flow()
	prover, ok := f.conn.(driver.Prover)
	if !ok {
		prover, ok = f.p.Producer.(driver.Prover)
	}
	k.claims(ok, "options or topics decide what a confirmation proves")
	config := driver.ProducerConfig{Topic: f.topic, Window: 1, Options: k.options(driver.OnProducer)}
	missing := config
	missing.Topic = unique()
	k.proves(prover, config, &driver.TopicSpec{
		Name: f.topic, Partitions: 1, Replicas: 1, Options: k.options(driver.OnTopic),
	})
	k.proves(prover, config, nil)
	k.proves(prover, missing, nil)
}

func (k *kit) proves(prover driver.Prover, config driver.ProducerConfig, created *driver.TopicSpec) {
	first := prover.Proof(k.Context(), config, created)
	again := prover.Proof(k.Context(), config, created)
	if first.Confirm > k.f.Confirm {
		k.Errorf("Proof: %v, and Features.Confirm is at most %v", first.Confirm, k.f.Confirm)
	}
	if first.How == "" || first != again {
		k.Errorf("Proof: %+v, and the second time %+v", first, again)
	}
}

// described makes a topic with two partitions, if the broker has partitions, and the defaults.
func described(k *kit) {
	c := k.open()
	describer, ok := c.(driver.TopicDescriber)
	k.claims(ok, "the broker describes topics")
	info, err := describer.DescribeTopic(k.Context(), k.topic(c, 2))
	if err != nil {
		k.Fatal(err)
	}
	own := k.Topic == nil // a topic of the harness has other options
	if own && (info.Partitions != 0 && info.Partitions != 2 || info.Replicas != 1) {
		k.Fatalf("a topic of 2 partitions and 1 replica is %+v", info)
	}
	options := k.options(driver.OnTopic)
	for name, value := range info.Options {
		want, ok := options[name]
		if !ok || fmt.Sprintf("%T", want) != fmt.Sprintf("%T", value) {
			k.Errorf("option %q: a %T, want a %T", name, value, want)
		}
		if o, _ := k.d.Option(name); own && o.Type == driver.Enum && want != value {
			k.Errorf("option %q: %v, want %v", name, value, want)
		}
	}
	_, err = describer.DescribeTopic(k.Context(), unique())
	k.kind(err, driver.NotFound)
}
