package js

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Of a broker that keeps no keys the driver may route by them all the same; what to do with one is the driver's to decide.
func TestTheKeyIsTheDriversWhateverTheBrokerKeeps(t *testing.T) {
	s := newScript(t).begin()
	address, err := driver.ParseURL("discard://h", nil)
	if err != nil {
		t.Fatal(err)
	}
	if address.Driver.Features.Key {
		t.Fatal("the broker keeps keys, so that this test shows nothing")
	}
	v, err := s.rt.RunString("({ key: 'eu.x', body: 'b' })")
	if err != nil {
		t.Fatal(err)
	}
	c := &connection{in: s.module.NewModuleInstance(s).(*instance), address: address}
	if m, err := c.message(v); err != nil || string(m.Key) != "eu.x" || string(m.Body) != "b" {
		t.Errorf("the driver is given key %q and body %q, %v", m.Key, m.Body, err)
	}
}
