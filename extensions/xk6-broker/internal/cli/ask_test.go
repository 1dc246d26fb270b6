package cli

import (
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

func TestWhichBrokerIsAsked(t *testing.T) {
	one, two := memory.New(memory.Config{Name: "one"}), memory.New(memory.Config{Name: "two"})
	driver.Register(one.Driver())
	driver.Register(two.Driver())
	bare := memory.New(memory.Config{Name: "bare", Bare: true})
	driver.Register(bare.Driver())
	ctx := t.Context()
	all, err := dial(ctx, []string{one.URL(), two.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer all.hangUp(ctx)
	result := &result.Result{Topics: []result.Topic{{Broker: "one://elsewhere:7", Driver: "one"}, {Broker: "two://127.0.0.1:7", Driver: "two"}}}
	if err := all.unasked(result); err == nil || !strings.Contains(err.Error(), "one://127.0.0.1:7: no group") ||
		!strings.Contains(err.Error(), "one://elsewhere:7 (one), two://127.0.0.1:7 (two)") {
		t.Errorf("error %v", err)
	}
	// A broker may have had another address where the test ran.
	if _, _, err := all.backlog(ctx, "one://elsewhere:7", "one", "nothing", "workers"); err == nil || !strings.Contains(err.Error(), "no such topic") {
		t.Errorf("error %v", err)
	}
	if _, known, err := all.backlog(ctx, "three://127.0.0.1:7", "three", "orders", "workers"); known || err != nil {
		t.Errorf("known %v, error %v", known, err)
	}
	if all.of("two://127.0.0.1:7", "two") != all[1] || all.of("one://127.0.0.1:7", "two") != all[1] {
		t.Error("the broker is not found")
	}
	if twins := append(all, all[0]); twins.of("one://elsewhere:7", "one") != nil || twins.of("one://127.0.0.1:7", "one") != all[0] {
		t.Error("two of one driver are told apart by nothing but their address")
	}
	all[1].asked = true
	if err := all.unasked(result); err != nil {
		t.Error(err)
	}
	for url, want := range map[string]string{"bare://127.0.0.1:7": "cannot say what it has", "nowhere": "--broker: ", "one://127.0.0.1:8": "refused"} {
		refused, err := dial(ctx, []string{url})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", url, err)
		}
		refused.hangUp(ctx)
	}
}
