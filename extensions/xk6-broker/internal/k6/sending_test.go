package k6

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// A driver that only sends is tested as far as that goes: publish latency is measured, what becomes
// of the messages is not observed, and nothing says that a consumer is missing.
func TestADriverThatOnlySends(t *testing.T) {
	driver.Register(memory.New(memory.Config{Name: "store", Features: memory.Store()}).Driver())
	init := newScript(t)
	if _, err := init.run(`broker.connect('store://127.0.0.1:7').consumer('metrics')`); err == nil || !strings.Contains(err.Error(), "consumer: store only sends: there is nothing to consume from") {
		t.Errorf("a consumer: %v", err)
	}
	s := newScript(t).begin()
	if _, err := s.run(`await broker.connect('store://127.0.0.1:7').producer('metrics').request('?')`); err == nil || !strings.Contains(err.Error(), "request: store has no requests: see conn.features.requests") {
		t.Errorf("a request: %v", err)
	}
	got := s.mustRun(`
		const conn = broker.connect('store://127.0.0.1:7');
		await conn.createTopic('metrics');
		const producer = conn.producer('metrics');
		const receipt = await producer.send({ body: 'cpu 1', key: 'host' });
		const made = await producer.produce({ rate: 2000, duration: '500ms' });
		const f = conn.features;
		return [receipt.sequence, receipt.position, receipt.partition, made.confirmed, f.deliver, f.order, f.start.length, f.position].join(' ');`)
	if got != "0   1000 none none 0 none" {
		t.Errorf("%v", got)
	}
	s.module.run.finish()
	result := s.module.run.buildResult()
	topic := result.Topics[0]
	if topic.Counts["confirmed"] != 1001 || len(topic.Groups) != 0 || topic.Trends["publish_latency"] == nil {
		t.Errorf("%v, %d groups", topic.Counts, len(topic.Groups))
	}
	if !result.Verdict.Account || reasontest.Has(result.Verdict.Reasons, "nothing-received") || reasontest.Has(result.Verdict.Reasons, "no-consumer") {
		t.Errorf("it is no reason against the run that nothing can be received: %q", reasontest.Codes(result.Verdict.Reasons))
	}
	if topic.Counts["unaccounted"] != 1001 || reasontest.Has(result.Verdict.Reasons, "not-stamped") {
		t.Errorf("%v, and the notes %q: nobody reads a stamp, so that there is none, and nothing to say of that", topic.Counts, reasontest.Codes(result.Verdict.Reasons))
	}
	var text, page strings.Builder
	if err := report.Text(&text, result); err != nil {
		t.Fatal(err)
	}
	if err := report.HTML(&page, result); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); !strings.Contains(got, "the driver only sends: what becomes of the messages is not observed") ||
		strings.Contains(got, "received") || strings.Contains(got, "lost") || strings.Contains(got, "consume") {
		t.Error(got)
	}
	if got := page.String(); !strings.Contains(got, "the driver only sends: what becomes of the messages is not observed") ||
		strings.Contains(got, `data-row="received"`) || strings.Contains(got, "could not be observed") || strings.Contains(got, `"label":"received"`) {
		t.Error("the page speaks of what was received")
	}
}

// audited is a store whose producers read back what they were confirmed.
type audited struct {
	driver.Conn
	missing uint64
	err     error
}

type auditedProducer struct {
	driver.Producer
	of        *audited
	confirmed atomic.Uint64
}

func (c *audited) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	p, err := c.Conn.NewProducer(ctx, config)
	return &auditedProducer{Producer: p, of: c}, err
}

func (p *auditedProducer) Send(ctx context.Context, b driver.Batch, done driver.Done) {
	p.Producer.Send(ctx, b, func(i int, err error) {
		if err == nil {
			p.confirmed.Add(1)
		}
		done(i, err)
	})
}

func (p *auditedProducer) Audit(context.Context) (driver.Audit, error) {
	return driver.Audit{Confirmed: p.confirmed.Load(), Missing: p.of.missing}, p.of.err
}

// What a store confirmed and does not have is lost: the account, the threshold, the text and the
// page say so. Where it cannot be asked they say that.
func TestWhatAStoreLosesIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		audited
		lost, uncertain uint64
		passes          bool
		text            string
	}{
		"auditedwell": {lost: 0, passes: true, text: "read back: expected 10, received 0, drained (read at the end of the test) 10, lost 0"},
		"auditedlost": {audited: audited{missing: 3}, lost: 3, text: "read back: expected 10, received 0, drained (read at the end of the test) 7, lost 3"},
		"auditedaway": {audited: audited{missing: 3, err: errors.New("nobody answers")}, uncertain: 10, text: "uncertain (not received, fate not known) 10"},
	} {
		t.Run(name, func(t *testing.T) {
			d := memory.New(memory.Config{Name: name, Features: memory.Store(), Bare: true}).Driver()
			open := d.Open
			d.Open = func(ctx context.Context, to driver.Target) (driver.Conn, error) {
				conn, err := open(ctx, to)
				return &audited{Conn: conn, missing: c.missing, err: c.err}, err
			}
			driver.Register(d)
			s := newScript(t).begin()
			s.mustRun(`
				const producer = broker.connect('` + name + `://127.0.0.1:7').producer('metrics');
				for (let i = 0; i < 10; i++) await producer.send('cpu');`)
			s.module.run.finish()
			r := s.module.run.buildResult()
			topic := r.Topics[0]
			if len(topic.Groups) != 1 || topic.Groups[0].Expected != 10 || topic.Groups[0].Lost != c.lost || topic.Groups[0].Uncertain != c.uncertain {
				t.Fatalf("%+v", topic.Groups)
			}
			if r.Verdict.Account == (c.uncertain > 0) {
				t.Errorf("the account can be believed: %v: %q", r.Verdict.Account, reasontest.Codes(r.Verdict.Reasons))
			}
			zero, err := verdict.ParseCondition("count==0")
			if err != nil {
				t.Fatal(err)
			}
			all := func(*result.Topic, *result.Group) bool { return true }
			if d := verdict.Account(r, zero, "lost", all, 1); d.Held != c.passes {
				t.Errorf("lost: %+v", d)
			}
			if d := verdict.Account(r, zero, "duplicated", all, 1); d.Held || d.Judged {
				t.Errorf("duplicated: %+v: nobody knows", d)
			}
			var text, page strings.Builder
			if err := report.Text(&text, r); err != nil {
				t.Fatal(err)
			}
			if err := report.HTML(&page, r); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), c.text) || strings.Contains(text.String(), "becomes of the messages is not observed") || !strings.Contains(page.String(), `data-row="read back"`) {
				t.Error(text.String())
			}
		})
	}
}
