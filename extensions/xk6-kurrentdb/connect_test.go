package kurrentdb

import (
	"context"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-kurrentdb/internal/double"
)

func TestCredentials(t *testing.T) {
	certificate, ca := certify(t)
	f := start(t, double.Config{TLS: certificate, User: "admin", Password: "changeit"})
	at := func(user string) string {
		return strings.Replace(f.url, "://", "+tls://"+user+"@", 1) + "?tlsCA=" + ca
	}
	c, err := f.try(at("admin:changeit"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background()) //nolint:errcheck // it never fails
	if _, err := c.NewProducer(f.context(), driver.ProducerConfig{Topic: "none", Options: f.resolve(driver.OnProducer, nil)}); f.kind(err) != driver.NotFound {
		t.Errorf("with the right password: %v", err)
	}
	_, err = f.try(at("admin:Wr0ng-pass"))
	if f.kind(err) != driver.Denied || strings.Contains(err.Error(), "Wr0ng-pass") {
		t.Errorf("with a wrong password: kind %s: %v", f.kind(err), err)
	}
}

// A certificate that nobody vouches for, a server that speaks TLS only, and a password that would go in the clear.
func TestTLSThatDoesNotFit(t *testing.T) {
	certificate, _ := certify(t)
	f := start(t, double.Config{TLS: certificate})
	_, err := f.try(f.url + "?tls=true")
	if f.kind(err) != driver.Denied {
		t.Errorf("an unknown authority: kind %s: %v", f.kind(err), err)
	}
	if _, err = f.try(f.url); err == nil {
		t.Error("without TLS: connected")
	}
	plain := start(t, double.Config{})
	_, err = plain.try(strings.Replace(plain.url, "://", "://admin:Pa55word@", 1))
	if f.kind(err) != driver.Rejected || !strings.Contains(err.Error(), `option "user"`) || strings.Contains(err.Error(), "Pa55word") {
		t.Errorf("a password in the clear: kind %s: %v", f.kind(err), err)
	}
}

func TestWhatIsGivenIsChecked(t *testing.T) {
	d, err := driver.Lookup("esdb")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		scope driver.Scope
		given any
		want  string
	}{
		"batch":          {driver.OnProducer, 0, "at least 1"},
		"maxRetryCount":  {driver.OnConsumer, -1, "at least 0"},
		"messageTimeout": {driver.OnConsumer, "1us", "at least 1ms"},
		"strategy":       {driver.OnConsumer, "random", "one of RoundRobin"},
		"maxAge":         {driver.OnTopic, "1500ms", "in steps of 1s"},
		"expiration":     {driver.OnProducer, "1s", "known are"},
	} {
		if _, err := d.Resolve(c.scope, driver.Latency, map[string]any{name: c.given}); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%v: %v", name, c.given, err)
		}
	}
	if _, err := d.Properties(map[string]any{"priority": 1}); err == nil || !strings.Contains(err.Error(), "eventType") {
		t.Errorf("a property that events do not have: %v", err)
	}
}

func TestWhoAnswersIsToldByItsVersion(t *testing.T) {
	for version, want := range map[string]string{"24.10.0": "EventStoreDB 24.10.0", "25.0.1": "KurrentDB 25.0.1", "26.1.0": "KurrentDB 26.1.0"} {
		info := start(t, double.Config{Version: version}).open().Info()
		if info.Server != want || info.Nodes != 1 {
			t.Errorf("version %s: %+v", version, info)
		}
	}
}
