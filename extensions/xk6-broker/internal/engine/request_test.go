package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// office is a bench where requests are answered by way of two topics.
type office struct {
	*bench
	at      Endpoint
	replies *Replies
}

func newOffice(t *testing.T, c memory.Config, named string) *office {
	t.Helper()
	b := newBench(t, c)
	o := &office{bench: b, at: Endpoint{Address: b.topic.Address, Words: "all"}}
	o.replies = o.open(named)
	return o
}

func (o *office) open(named string) *Replies {
	o.t.Helper()
	replies, err := o.run.Replies(o.t.Context(), o.at, "orders", named, o.series)
	if err != nil {
		o.t.Fatal(err)
	}
	return replies
}

func (o *office) close() {
	o.t.Helper()
	o.finish()
	if err := o.run.Disconnect(context.Background()); err != nil {
		o.t.Error(err)
	}
}

// serve answers until ctx ends; reply says how.
func (o *office) serve(ctx context.Context, c *Consumer, reply func(driver.Message) error) {
	in := NewBuffer(10)
	for ctx.Err() == nil {
		n, err := c.Receive(ctx, in)
		if err != nil {
			o.t.Error(err)
			return
		}
		c.HandOver(in, n)
		for i := range n {
			if err := reply(in.Messages[i]); err != nil {
				o.t.Error(err)
			}
		}
		if n > 0 && o.topic.Address.Driver.Features.Settle != 0 {
			if err := c.Settle(context.Background(), in, 0, n, driver.Ack); err != nil {
				o.t.Error(err)
			}
		}
	}
}

// echo is a consumer that answers with what it was asked, until stop is called.
func (o *office) echo(times int) (stop func()) {
	config := driver.ConsumerConfig{Group: "workers"}
	if f := o.topic.Address.Driver.Features; !f.Groups {
		config.Group = ""
		if !f.Start.Has(driver.StartNew) {
			config.Start = driver.StartEarliest
		}
	}
	c := o.consumer(config)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		o.serve(ctx, c, func(m driver.Message) error {
			for range times {
				if err := c.Reply(ctx, o.at, m, driver.Message{Body: m.Body}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return func() {
		cancel()
		serving.Wait()
	}
}

// without is some features without request and reply, for a driver that can do only that.
func without(f driver.Features) driver.Features {
	f.Requests = false
	return f
}

// subject is a subject with headers.
func subject() driver.Features {
	f := memory.Subject()
	f.Headers = true
	return f
}

func deferred(f driver.Features) driver.Features {
	f.Async = false
	return f
}

// Wherever there are consumers each request has its own reply, whatever the driver can do: where Send waits for the
// broker, where topics are made and where they are just there. The account of the requests is whole and none of the replies is in it.
func TestRequestsAreAnsweredByTwoTopics(t *testing.T) {
	for name, config := range map[string]memory.Config{
		"log":                    {Features: memory.Log()},
		"queue":                  {Features: without(memory.Queue())},
		"subject":                {Features: subject()},
		"log, send waits":        {Features: deferred(memory.Log())},
		"subject, send waits":    {Features: deferred(subject())},
		"topics are made by use": {Features: without(memory.Full()), Bare: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []StampMode{StampInBody, StampInHeader, StampOff} {
				if mode == StampInHeader && !config.Features.Headers {
					continue
				}
				synctest.Test(t, func(t *testing.T) { answered(t, config, mode) })
			}
		})
	}
}

func answered(t *testing.T, config memory.Config, mode StampMode) {
	o := newOffice(t, config, "")
	stop := o.echo(1)
	s := o.sender(100)
	s.stamp = mode
	const rounds, sideBySide = 5, 40
	for round := range rounds {
		var asking sync.WaitGroup
		for i := range sideBySide {
			asking.Go(func() {
				body := fmt.Sprintf("question %d of round %d", i, round)
				reply, err := s.Request(t.Context(), time.Minute, driver.Message{Body: []byte(body)}, Timing{}, o.replies)
				if err != nil || string(reply.Body) != body {
					t.Errorf("%q, %v: want %q", reply.Body, err, body)
				}
			})
		}
		asking.Wait()
	}
	stop()
	o.close()
	const all = rounds * sideBySide
	for counter, want := range map[recording.Counter]int64{
		recording.Due: all, recording.Sent: all, recording.Confirmed: all, recording.Received: all, recording.Unanswered: 0, recording.StrayReplies: 0,
		recording.Foreign: 0, recording.Routed: 0,
	} {
		if n := o.series.Count(counter); n != want {
			t.Errorf("%v: %d, want %d", counter, n, want)
		}
	}
	if n := o.series.Count(recording.Unstamped); mode != StampOff && n > 0 {
		t.Errorf("%d requests were received without a stamp", n)
	}
	if sent, received := o.series.Count(recording.BytesSent), o.series.Count(recording.BytesReceived); config.Features.Headers && sent != received {
		t.Errorf("%d bytes were sent and %d received", sent, received)
	}
	if n := o.series.Trend(recording.Closed, recording.RequestLatency).Count(); n != all {
		t.Errorf("%d latencies", n)
	}
	if topics := o.run.Topics(); len(topics) != 1 {
		t.Errorf("%d topics have an account", len(topics))
	}
	if a := o.only(); mode != StampOff && (a.Received != all || a.Expected != all || a.Lost+a.Duplicated+a.Reordered+a.Undelivered+a.Uncertain > 0) {
		t.Errorf("%+v", a)
	}
	if errs := o.series.measured(everyPhase).Errors; len(errs) > 0 {
		t.Error(errs)
	}
}

// What is measured is from when the request was due to when the reply was there: of each leg the time at the server and the way.
func TestRequestLatencyByTwoTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const service, transit, late = 3 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond
		o := newOffice(t, memory.Config{
			Features: memory.Log(), Service: func(int64) time.Duration { return service }, Transit: func(int64) time.Duration { return transit },
		}, "")
		stop := o.echo(1)
		s := o.sender(10)
		due := driver.Now()
		time.Sleep(late)
		if _, err := s.Request(t.Context(), time.Minute, driver.Message{Body: []byte("?")}, Timing{Due: due}, o.replies); err != nil {
			t.Fatal(err)
		}
		stop()
		o.close()
		const there = 2 * (service + transit)
		sameDistribution(t, "request time", o.series.Trend(recording.Open, recording.RequestTime), []time.Duration{there})
		sameDistribution(t, "request latency", o.series.Trend(recording.Open, recording.RequestLatency), []time.Duration{late + there})
		sameDistribution(t, "schedule lag", o.series.Trend(recording.Open, recording.ScheduleLag), []time.Duration{late})
		sameDistribution(t, "end-to-end latency", o.series.Trend(recording.Open, recording.E2ELatency), []time.Duration{late + service + transit})
		if n := o.series.Trend(recording.Open, recording.PublishLatency).Count(); n != 0 {
			t.Errorf("%d requests are also measured as messages", n)
		}
	})
}

// A request whose reply does not come is an error in time, and is counted. A reply that comes later, or again, is a stray.
func TestRepliesThatAreLateOrComeAgain(t *testing.T) {
	for name, features := range map[string]driver.Features{"log": memory.Log(), "subject": subject()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, memory.Config{Features: features}, "")
				c := o.consumer(driver.ConsumerConfig{})
				s := o.sender(10)
				ask := func(body string, timeout time.Duration) (driver.Message, error) {
					return s.Request(t.Context(), timeout, driver.Message{Body: []byte(body)}, Timing{}, o.replies)
				}
				_, err := ask("first", time.Second)
				if o.topic.Address.Driver.KindOf(err) != driver.Timeout {
					t.Fatalf("nobody answered: %v", err)
				}
				if n := o.series.Count(recording.Unanswered); n != 1 {
					t.Errorf("%d unanswered", n)
				}
				var second driver.Message
				var asking sync.WaitGroup
				asking.Go(func() { second, err = ask("second", time.Minute) })
				ctx, cancel := context.WithCancel(t.Context())
				var serving sync.WaitGroup
				serving.Go(func() {
					o.serve(ctx, c, func(m driver.Message) error {
						for range 3 {
							if err := c.Reply(ctx, o.at, m, driver.Message{Body: append([]byte("to "), m.Body...)}); err != nil {
								return err
							}
						}
						return nil
					})
				})
				asking.Wait()
				if err != nil || string(second.Body) != "to second" {
					t.Errorf("%q, %v", second.Body, err)
				}
				synctest.Wait()
				cancel()
				serving.Wait()
				o.close()
				for counter, want := range map[recording.Counter]int64{
					recording.Unanswered: 1, recording.StrayReplies: 1 + 2 + 2, recording.Confirmed: 2, recording.Received: 2,
				} {
					if n := o.series.Count(counter); n != want {
						t.Errorf("%v: %d, want %d", counter, n, want)
					}
				}
				if n := o.series.measured(everyPhase).Errors[recording.ErrorKey{Op: "request", Kind: string(driver.Timeout)}]; n != 1 {
					t.Errorf("%v", o.series.measured(everyPhase).Errors)
				}
				if h := o.series.Trend(recording.Closed, recording.FailedLatency); h.Count() != 1 || h.Max() < int64(time.Second) {
					t.Errorf("%d failed, the longest after %v", h.Count(), time.Duration(h.Max()))
				}
			})
		})
	}
}

// What comes to the replies and answers no request of the test is counted, and matched to none; what answers one of another process, or by another connection,
// is not.
func TestStrayReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, memory.Config{Features: memory.Log()}, "")
		names := o.topic.Address.Driver.Correlation
		p, err := o.conn.NewProducer(t.Context(), driver.ProducerConfig{Topic: o.replies.topic, Window: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"", "0", o.replies.prefix, o.replies.prefix + "0", o.replies.prefix + "zz", "x" + o.replies.prefix + "0", o.replies.test + "0000abcd-1-0"} {
			m := driver.Message{Body: []byte("nobody asked"), Headers: []driver.Header{{Name: names.ID, Value: []byte(id)}}}
			p.Send(t.Context(), driver.Batch{m, {Body: []byte("no header")}}, func(int, error) {})
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		o.close()
		if n := o.series.Count(recording.StrayReplies); n != 13 {
			t.Errorf("%d strays", n)
		}
	})
}

// However many ask, one consumer reads the replies of a connection, from one topic, and it is gone at the end.
func TestOneTopicForTheRepliesOfAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, memory.Config{Features: memory.Log()}, "")
		stop := o.echo(1)
		var asking sync.WaitGroup
		for range 100 {
			asking.Go(func() {
				if replies := o.open(""); replies != o.replies {
					t.Error("replies of their own")
				}
				s := o.sender(10)
				if _, err := s.Request(t.Context(), time.Minute, driver.Message{Body: []byte("?")}, Timing{}, o.replies); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		stop()
		topic := o.replies.topic
		if err := o.run.Finish(context.Background(), Drain{Limit: time.Minute}); err != nil {
			t.Error(err)
		}
		_, err := o.conn.NewProducer(t.Context(), driver.ProducerConfig{Topic: topic, Window: 1})
		if o.topic.Address.Driver.KindOf(err) != driver.NotFound {
			t.Errorf("the topic for replies is still there: %v", err)
		}
		if _, err := o.run.Replies(context.Background(), Endpoint{Address: o.at.Address, Words: "late"}, "orders", "", o.series); !errors.Is(err, ErrEnded) {
			t.Errorf("opened after the end: %v", err)
		}
		o.close()
	})
}

// A topic that was named is used as it is: it has to be there, and stays.
func TestNamedTopicForReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: memory.Log()})
		o := &office{bench: b, at: Endpoint{Address: b.topic.Address, Words: "all"}}
		if _, err := o.run.Replies(t.Context(), o.at, "orders", "answers", o.series); b.topic.Address.Driver.KindOf(err) != driver.NotFound || !strings.Contains(err.Error(), "answers") {
			t.Errorf("no such topic: %v", err)
		}
		admin, _ := b.conn.(driver.Admin)
		if err := admin.CreateTopic(t.Context(), driver.TopicSpec{Name: "answers", Partitions: 3, Replicas: 1}); err != nil {
			t.Fatal(err)
		}
		o.replies = o.open("answers")
		stop := o.echo(1)
		if _, err := o.sender(10).Request(t.Context(), time.Minute, driver.Message{Body: []byte("?")}, Timing{}, o.replies); err != nil {
			t.Error(err)
		}
		stop()
		if err := o.run.Finish(context.Background(), Drain{Limit: time.Minute}); err != nil {
			t.Error(err)
		}
		p, err := b.conn.NewProducer(t.Context(), driver.ProducerConfig{Topic: "answers", Window: 1})
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Close(t.Context())
		o.close()
	})
}

// A request that the broker refuses is an error at once, and none that had no reply.
func TestRefusedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		features := memory.Log()
		features.MaxMessageBytes = 100
		o := newOffice(t, memory.Config{Features: features}, "")
		s := o.sender(10)
		began := time.Now()
		for _, m := range []driver.Message{
			{Body: make([]byte, 200)}, {Body: []byte("?"), Headers: []driver.Header{{Name: driver.Correlated.ID, Value: []byte("mine")}}},
		} {
			if _, err := s.Request(t.Context(), time.Minute, m, Timing{}, o.replies); o.topic.Address.Driver.KindOf(err) != driver.Rejected {
				t.Error(err)
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		o.close()
		if n, confirmed := o.series.Count(recording.Unanswered), o.series.Count(recording.Confirmed); n != 0 || confirmed != 0 {
			t.Errorf("%d unanswered, %d confirmed", n, confirmed)
		}
	})
}

// A full window holds requests up as it does messages, at most as long as the reply may take.
func TestRequestsWaitForTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const service = 10 * time.Millisecond
		o := newOffice(t, memory.Config{Features: memory.Log(), Service: func(int64) time.Duration { return service }}, "")
		s := o.sender(1)
		var asking sync.WaitGroup
		for range 3 {
			asking.Go(func() {
				_, err := s.Request(t.Context(), 15*time.Millisecond, driver.Message{Body: []byte("?")}, Timing{Due: driver.Now()}, o.replies)
				if o.topic.Address.Driver.KindOf(err) != driver.Timeout {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		o.close()
		if sent, unanswered := o.series.Count(recording.Sent), o.series.Count(recording.Unanswered); sent != 2 || unanswered != 2 {
			t.Errorf("%d sent, %d unanswered: one was still waiting", sent, unanswered)
		}
		if n := o.series.measured(everyPhase).Errors[recording.ErrorKey{Op: "request", Kind: string(driver.Timeout)}]; n != 3 {
			t.Errorf("%v", o.series.measured(everyPhase).Errors)
		}
		if lag := o.series.Trend(recording.Open, recording.GeneratorLag).Max(); lag > int64(time.Millisecond) {
			t.Errorf("the generator is blamed for %v in the window", time.Duration(lag))
		}
	})
}

// parrot is a producer whose broker answers each request at once.
type parrot struct {
	driver.Producer

	replies *Replies
	front   int // bytes of the stamp in a body
}

func (p parrot) Send(_ context.Context, b driver.Batch, done driver.Done) {
	done(0, nil)
	p.replies.take(&driver.Message{Body: b[0].Body[p.front:], Headers: b[0].Headers})
}

// BenchmarkRequest is what a request by two topics costs beside the broker.
func BenchmarkRequest(b *testing.B) {
	for name, features := range map[string]driver.Features{"log": memory.Log(), "subject": subject()} {
		b.Run(name, func(b *testing.B) {
			features.Async = true
			broker := memory.New(memory.Config{Name: fmt.Sprintf("memory%d", addresses.Add(1)), Features: features})
			driver.Register(broker.Driver())
			address, err := driver.ParseURL(broker.URL(), nil)
			if err != nil {
				b.Fatal(err)
			}
			run, at := NewRun("", 0), Endpoint{Address: address, Words: "all"}
			conn, err := run.Connect(b.Context(), at)
			if err != nil {
				b.Fatal(err)
			}
			if err := conn.(driver.Admin).CreateTopic(b.Context(), driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: 1}); err != nil {
				b.Fatal(err)
			}
			series := run.Series(Labels{Broker: address.String(), Driver: address.Driver.Name, Topic: "orders"})
			pub, err := run.Publisher(b.Context(), at, "", driver.ProducerConfig{Topic: "orders", Window: 10}, nil)
			if err != nil {
				b.Fatal(err)
			}
			replies, err := run.Replies(b.Context(), at, "orders", "", series)
			if err != nil {
				b.Fatal(err)
			}
			silent := pub.producer
			mode, _ := StampAuto.Resolve(features, false)
			pub.producer = parrot{silent, replies, mode.Front()}
			s, body := pub.NewSender(mode, series), make([]byte, 100)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Request(b.Context(), time.Minute, driver.Message{Body: body}, Timing{}, replies); err != nil {
					b.Fatal(err)
				}
			}
			pub.producer = silent
			if err := errors.Join(run.Finish(context.Background(), Drain{Limit: time.Minute}), run.Disconnect(context.Background())); err != nil {
				b.Error(err)
			}
		})
	}
}
