package k6

import (
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// A driver that only sends is tested as far as that goes: publish latency is measured, what becomes of the messages is not observed, and
// nothing says that a consumer is missing.
func TestADriverThatOnlySends(t *testing.T) {
	driver.Register(memory.New(memory.Config{Name: "store", Features: memory.Store()}).Driver())
	init := newScript(t)
	if _, err := init.run(`broker.connect('store://127.0.0.1:7').consumer('metrics')`); err == nil || !strings.Contains(err.Error(), "consumer: store only sends: there is nothing to consume from") {
		t.Errorf("a consumer: %v", err)
	}
	s := newScript(t).begin()
	if _, err := s.run(`await broker.connect('store://127.0.0.1:7').producer('metrics').request('?')`); err == nil || !strings.Contains(err.Error(), "request: store only sends: there is nothing that a reply could be received from") {
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
	s.module.run.ended.Do(s.module.run.end)
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
	if got := page.String(); !strings.Contains(got, "The driver only sends: what becomes of the messages is not observed.") ||
		strings.Contains(got, `data-count="received"`) || strings.Contains(got, "could not be observed") || strings.Contains(got, `"label":"received"`) {
		t.Error("the page speaks of what was received")
	}
}
