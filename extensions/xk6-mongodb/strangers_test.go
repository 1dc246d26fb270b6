package mongodb_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func open(t *testing.T, url string, options map[string]any) error {
	t.Helper()
	c, err := address(t, url, options).Open(t.Context(), "test")
	if err == nil {
		_ = c.Close(context.Background())
	}
	return err
}

// TestDenied has the answer that MongoDB gives to a wrong password; the stand-in has no users.
func TestDenied(t *testing.T) {
	t.Parallel()
	var database atomic.Value
	at := answering(t, func(command string, c bson.Raw) any {
		if command == "saslStart" {
			database.Store(c.Lookup("$db").StringValue())
			return refusal(18, "AuthenticationFailed", "Authentication failed.")
		}
		if _, err := c.LookupErr("speculativeAuthenticate"); err == nil {
			return hello(nil)
		}
		return nil
	})
	for url, want := range map[string]string{
		"mongodb://me:5ecret@" + at: "admin", "mongodb://me:5ecret@" + at + "/mine": "mine", "mongodb://me:5ecret@" + at + "/mine?authSource=theirs": "theirs",
	} {
		err := open(t, url+map[bool]string{true: "&", false: "?"}[strings.Contains(url, "?")]+"authMechanism=SCRAM-SHA-256", nil)
		if kindOf(t, err) != driver.Denied || !strings.Contains(fmt.Sprint(err), "Authentication failed") || strings.Contains(fmt.Sprint(err), "5ecret") {
			t.Errorf("%s: kind %s: %v", want, kindOf(t, err), err)
		}
		if database.Load() != want {
			t.Errorf("asked database %v for the user, want %s", database.Load(), want)
		}
	}
	at = answering(t, func(command string, _ bson.Raw) any {
		if command == "listCollections" {
			return refusal(13, "Unauthorized", "command listCollections requires authentication")
		}
		return nil
	})
	s := dial(t, "mongodb://"+at, nil)
	if _, err := s.NewProducer(t.Context(), driver.ProducerConfig{Topic: "q", Options: values(t, s.a, driver.OnProducer)}); kindOf(t, err) != driver.Denied {
		t.Errorf("no user, where one is needed: %v", err)
	}
}

// TestFates has a server answer one insert in each way that it can.
func TestFates(t *testing.T) {
	waiting := answers{"code": 64, "codeName": "WriteConcernTimeout", "errmsg": "waiting for replication timed out", "errInfo": answers{"wtimeout": true}}
	for name, c := range map[string]struct {
		answer any
		kinds  []driver.Kind
	}{
		"all":           {answers{"ok": 1, "n": 3}, []driver.Kind{"", "", ""}},
		"one":           {answers{"ok": 1, "n": 2, "writeErrors": []answers{{"index": 1, "code": 121, "errmsg": "Document failed validation"}}}, []driver.Kind{"", driver.Rejected, ""}},
		"replication":   {answers{"ok": 1, "n": 3, "writeConcernError": waiting}, []driver.Kind{driver.Timeout, driver.Timeout, driver.Timeout}},
		"both":          {answers{"ok": 1, "n": 2, "writeErrors": []answers{{"index": 0, "code": 11000, "errmsg": "E11000"}}, "writeConcernError": waiting}, []driver.Kind{driver.Rejected, driver.Timeout, driver.Timeout}},
		"no primary":    {refusal(10107, "NotWritablePrimary", "not primary"), []driver.Kind{driver.Disconnected, driver.Disconnected, driver.Disconnected}},
		"unsatisfiable": {answers{"ok": 1, "n": 3, "writeConcernError": answers{"code": 100, "errmsg": "Not enough data-bearing nodes"}}, []driver.Kind{driver.Rejected, driver.Rejected, driver.Rejected}},
		"no space":      {refusal(14031, "OutOfDiskSpace", "no space"), []driver.Kind{driver.Throttled, driver.Throttled, driver.Throttled}},
	} {
		t.Run(name, func(t *testing.T) {
			var inserts atomic.Int32
			at := answering(t, func(command string, _ bson.Raw) any {
				if command != "insert" {
					return nil
				}
				inserts.Add(1)
				return c.answer
			})
			errs := send(t, dial(t, "mongodb://"+at, map[string]any{"inFlight": 1}).produce(t, "q"), "a", "b", "c")
			for i, err := range errs {
				if kindOf(t, err) != c.kinds[i] {
					t.Errorf("message %d: kind %q, want %q: %v", i, kindOf(t, err), c.kinds[i], err)
				}
			}
			if n := inserts.Load(); n != 1 {
				t.Errorf("%d inserts: nothing is sent twice", n)
			}
		})
	}
}

// TestSharedFate has a server break connections under load: commands that were to begin on others then fail with them, for the client clears its pool.
func TestSharedFate(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	var inserts atomic.Int32
	at := answering(t, func(command string, _ bson.Raw) any {
		if command == "insert" && inserts.Add(1)%10 == 0 {
			return hangUp{}
		}
		return nil
	})
	p := dial(t, "mongodb://"+at, map[string]any{"batch": 1}).produce(t, "q")
	await(t, "a command fails with another's connection", func() bool {
		shared := false
		for _, err := range send(t, p, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p") {
			if kind := kindOf(t, err); err != nil && kind != driver.Disconnected {
				t.Fatalf("kind %q: %v", kind, err)
			}
			shared = shared || strings.Contains(fmt.Sprint(err), "was cleared because another operation failed")
		}
		return shared
	})
}

// TestWriteConcerns looks at what is asked of the server, and at what a confirmation is said to prove.
func TestWriteConcerns(t *testing.T) {
	set := func(of ...string) answers {
		return answers{"setName": "rs", "hosts": of, "me": of[0], "primary": of[0], "secondary": false, "setVersion": 1}
	}
	three := set("a:1", "b:2", "c:3")
	withPassive := set("a:1")
	withPassive["passives"], withPassive["arbiters"] = []string{"p:1"}, []string{"x:1"}
	for _, c := range []struct {
		says    answers
		options string
		concern string
		confirm driver.Confirm
		how     string
	}{
		{nil, "", `{"w": "majority"}`, driver.Accepted, "one server, in memory (w=majority)"},
		{nil, "&w=1&journal=true", `{"w": {"$numberInt":"1"},"j": true}`, driver.Accepted, "one server, in the journal on disk (w=1, journal)"},
		{nil, "&w=0", `{"w": {"$numberInt":"0"}}`, driver.Unconfirmed, "not known to be stored: the server does not answer (w=0)"},
		{three, "", `{"w": "majority"}`, driver.Replicated, "a majority of the 3 members with data of replica set rs, on disk if the servers' settings say so (w=majority)"},
		{three, "&profile=durable", `{"w": "majority","j": true}`, driver.Replicated, "a majority of the 3 members with data of replica set rs, in the journal on disk (w=majority, journal)"},
		{three, "&w=2", `{"w": {"$numberInt":"2"}}`, driver.Replicated, "2 of the 3 members with data of replica set rs, in memory (w=2)"},
		{three, "&w=1", `{"w": {"$numberInt":"1"}}`, driver.Accepted, "the primary of replica set rs, in memory (w=1)"},
		{set("a:1"), "", `{"w": "majority"}`, driver.Accepted, "the only member with data of replica set rs, on disk if the servers' settings say so (w=majority)"},
		{withPassive, "&w=2", `{"w": {"$numberInt":"2"}}`, driver.Replicated, "2 of the 2 members with data of replica set rs, in memory (w=2)"},
		{answers{"msg": "isdbgrid"}, "&w=2", `{"w": {"$numberInt":"2"}}`, driver.Accepted, "at least one member of a shard, whose number mongos does not report, in memory (w=2)"},
	} {
		asked := make(chan string, 1)
		at := answering(t, func(command string, m bson.Raw) any {
			if command == "insert" {
				asked <- m.Lookup("writeConcern").String()
			}
			if isHello(command) {
				return hello(c.says)
			}
			return nil
		})
		// The set's other members are nowhere: a direct connection does not look for them.
		s := dial(t, "mongodb://"+at+"?directConnection=true"+c.options, nil)
		mustSend(t, s.produce(t, "q"), "m")
		if got := <-asked; strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(c.concern, " ", "") {
			t.Errorf("%s: asked %s, want %s", c.options, got, c.concern)
		}
		proof := s.Conn.(driver.Prover).Proof(t.Context(), driver.ProducerConfig{Options: values(t, s.a, driver.OnProducer)}, nil)
		if proof.Confirm != c.confirm || proof.How != c.how {
			t.Errorf("%s: %+v", c.options, proof)
		}
	}
}

// TestNobodyAnswers has a server refuse what it does not answer for, with w=0: the confirmations say nothing of it, and say so.
func TestNobodyAnswers(t *testing.T) {
	asked := make(chan int, 1)
	at := answering(t, func(command string, c bson.Raw) any {
		if command != "insert" {
			return nil
		}
		all, err := c.Lookup("documents").Array().Values()
		if err != nil {
			t.Error(err)
		}
		asked <- len(all)
		return refusal(10107, "NotWritablePrimary", "not primary")
	})
	s := dial(t, "mongodb://"+at, map[string]any{"w": "0", "inFlight": 1})
	p := s.produce(t, "q")
	for range 3 { // on one connection: what comes over it next is the answer to something else
		if errs := send(t, p, "a"); errs[0] != nil {
			t.Errorf("the server does not answer, and this is known of it: %v", errs[0])
		}
		if n := <-asked; n != 1 {
			t.Errorf("%d documents", n)
		}
	}
	if proof := s.Conn.(driver.Prover).Proof(t.Context(), driver.ProducerConfig{Options: values(t, s.a, driver.OnProducer)}, nil); proof.Confirm != driver.Unconfirmed {
		t.Errorf("nothing is known, and said is %+v", proof)
	}
}

// TestProvesLess takes a member from the replica set while a producer sends.
func TestProvesLess(t *testing.T) {
	var less, broken atomic.Bool
	at := answering(t, func(command string, _ bson.Raw) any {
		hosts := []string{"a:1", "b:2", "c:3"}
		if less.Load() {
			hosts = hosts[:1]
		}
		if isHello(command) {
			return hello(answers{"setName": "rs", "hosts": hosts, "me": "a:1", "primary": "a:1", "secondary": false})
		}
		if command == "insert" && broken.CompareAndSwap(true, false) {
			return hangUp{} // after which the client asks again who is there
		}
		return nil
	})
	p := dial(t, "mongodb://"+at+"?directConnection=true", nil).produce(t, "q")
	mustSend(t, p, "before")
	less.Store(true)
	broken.Store(true)
	send(t, p, "breaks")
	await(t, "the producer refuses", func() bool {
		err := send(t, p, "less")[0]
		return kindOf(t, err) == driver.Rejected && strings.Contains(err.Error(), "fewer members")
	})
}

// TestServerAway sends while nobody listens.
func TestServerAway(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	at := answering(t, func(string, bson.Raw) any {
		if away.Load() {
			return hangUp{}
		}
		return nil
	})
	p := dial(t, "mongodb://"+at, map[string]any{"connectTimeout": "3s"}).produce(t, "q")
	mustSend(t, p, "before")
	away.Store(true)
	for _, err := range append(send(t, p, "away"), send(t, p, "still")...) {
		if kindOf(t, err) != driver.Disconnected {
			t.Errorf("kind %s: %v", kindOf(t, err), err)
		}
	}
	away.Store(false)
	await(t, "it sends again", func() bool { return send(t, p, "after")[0] == nil })
}

// TestOtherCollectionsOfMongoDB are what the stand-in has none of.
func TestOtherCollectionsOfMongoDB(t *testing.T) {
	for want, collection := range map[string]answers{
		"it is capped":                        {"name": "q", "type": "collection", "options": answers{"capped": true, "size": 1000}},
		"it is a view, and":                   {"name": "q", "type": "view", "options": answers{}},
		"it is a timeseries, and":             {"name": "q", "type": "timeseries", "options": answers{}},
		`database test has no collection "q"`: {"name": "other", "type": "collection"},
	} {
		at := answering(t, func(command string, _ bson.Raw) any {
			switch command {
			case "create":
				return refusal(48, "NamespaceExists", "a collection of that name exists")
			case "listCollections":
				return answers{"ok": 1, "cursor": answers{"id": int64(0), "ns": "test.$cmd.listCollections", "firstBatch": []answers{collection}}}
			}
			return nil
		})
		if err := dial(t, "mongodb://"+at, nil).Conn.(driver.Admin).CreateTopic(t.Context(), driver.TopicSpec{Name: "q"}); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestNoChangeStreams asks for one where there are none.
func TestNoChangeStreams(t *testing.T) {
	at := answering(t, func(command string, _ bson.Raw) any {
		if command == "aggregate" {
			return refusal(40573, "Location40573", "The $changeStream stage is only supported on replica sets")
		}
		return nil
	})
	s := dial(t, "mongodb://"+at, map[string]any{"wait": "changeStream"})
	_, err := s.NewConsumer(t.Context(), driver.ConsumerConfig{Topic: "q", Prefetch: 1, Start: driver.StartEarliest, Options: values(t, s.a, driver.OnConsumer)})
	if kindOf(t, err) != driver.Unsupported {
		t.Errorf("kind %s: %v", kindOf(t, err), err)
	}
}

// TestOtherServers has something else answer at the port.
func TestOtherServers(t *testing.T) {
	old := answering(t, func(command string, _ bson.Raw) any {
		if isHello(command) {
			return hello(answers{"maxWireVersion": 6})
		}
		return nil
	})
	for what, c := range map[string]struct {
		at, says string
		kind     driver.Kind
	}{
		"an old MongoDB": {old, "wire version", driver.Unsupported},
	} {
		err := open(t, "mongodb://me:5ecret@"+c.at, map[string]any{"connectTimeout": "10m"}) // which is not waited for
		if kindOf(t, err) != c.kind || !strings.Contains(fmt.Sprint(err), c.says) || strings.Contains(fmt.Sprint(err), "5ecret") {
			t.Errorf("%s: kind %s: %v", what, kindOf(t, err), err)
		}
	}
}

// TestNoAnswer has a server that takes messages and says nothing.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	at := answering(t, func(command string, _ bson.Raw) any {
		if command == "insert" {
			<-over
		}
		return nil
	})
	t.Cleanup(func() { close(over) }) // before the server waits for its answers
	err := send(t, dial(t, "mongodb://"+at, map[string]any{"timeout": "1s"}).produce(t, "q"), "m")[0]
	if kindOf(t, err) != driver.Timeout || !strings.Contains(fmt.Sprint(err), `option "timeout": no answer within 1s`) {
		t.Errorf("kind %s: %v", kindOf(t, err), err)
	}
}

// TestTLS has a server whose authority is only known to those who are told.
func TestTLS(t *testing.T) {
	lender := httptest.NewTLSServer(nil) // of a certificate
	t.Cleanup(lender.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: lender.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", lender.TLS)
	if err != nil {
		t.Fatal(err)
	}
	at := answeringAt(t, l, func(string, bson.Raw) any { return nil })
	for _, url := range []string{"mongodb://" + at + "?tlsCA=" + ca, "mongodb+tls://" + at + "?tlsInsecure=true"} {
		mustSend(t, dial(t, url, nil).produce(t, "q"), "m")
	}
	for url, says := range map[string]string{
		"mongodb+tls://me:5ecret@" + at: "certificate", "mongodb://" + at + "?tlsServerName=other&tlsCA=" + ca: "other", "mongodb://" + at + "?tlsCA=/nowhere": `option "tlsCA"`,
	} {
		err := open(t, url, nil)
		if kind := kindOf(t, err); kind != driver.Denied && kind != driver.Rejected || !strings.Contains(fmt.Sprint(err), says) || strings.Contains(fmt.Sprint(err), "5ecret") {
			t.Errorf("%s: kind %s: %v", says, kind, err)
		}
	}
	if err := open(t, "mongodb://"+at, nil); err == nil {
		t.Error("without TLS: connected")
	}
}

// TestOneOfTwoHosts has one that refuses at once, and again, and one that takes its time.
func TestOneOfTwoHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	var looked atomic.Int32
	var self atomic.Value
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	self.Store(l.Addr().String())
	patient := answeringAt(t, l, func(command string, _ bson.Raw) any {
		if isHello(command) && looked.Add(1) == 1 {
			time.Sleep(1500 * time.Millisecond) // meanwhile the client looks at the other one every 500 ms
		}
		if isHello(command) {
			return hello(answers{"setName": "rs", "hosts": []string{self.Load().(string)}, "me": self.Load(), "primary": self.Load(), "secondary": false})
		}
		return nil
	})
	if err := open(t, "mongodb://127.0.0.1:1,"+patient, nil); kindOf(t, err) != "" {
		t.Error(err)
	}
}

// TestChangeStreamsThatEnd has a server that ends each at once: it is opened again, and not without a pause.
func TestChangeStreamsThatEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	var opened atomic.Int32
	at := answering(t, func(command string, _ bson.Raw) any {
		switch {
		case isHello(command):
			return hello(answers{"setName": "rs", "hosts": []string{"a:1"}, "me": "a:1", "primary": "a:1", "secondary": false})
		case command == "aggregate":
			opened.Add(1)
			return usual("find")
		}
		return nil
	})
	dial(t, "mongodb://"+at+"?directConnection=true", nil).consume(t, "q")
	await(t, "it is opened again", func() bool { return opened.Load() >= 2 })
	before := opened.Load()
	time.Sleep(250 * time.Millisecond) // in which nothing much must happen: there are pauses of 25 ms
	if n := opened.Load() - before; n > 40 {
		t.Errorf("opened %d times in 250ms", n)
	}
}
