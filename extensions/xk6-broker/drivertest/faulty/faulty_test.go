package faulty_test

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/faulty"
)

func TestCorrect(t *testing.T) {
	for _, c := range []faulty.Config{
		{Name: "full"},
		{Name: "queue", Features: faulty.Queue()},
		{Name: "subject", Features: faulty.Subject(), Bare: true},
	} {
		t.Run(c.Name, func(t *testing.T) {
			b := faulty.New(c)
			driver.Register(b.Driver())
			drivertest.Run(t, harness(b, c))
		})
	}
}

func harness(b *faulty.Broker, c faulty.Config) drivertest.Harness {
	return drivertest.Harness{
		Driver: c.Name, URL: b.URL(), NoProxy: true, HeaderBytes: true,
		Freeze: func(testing.TB) func() { return b.Freeze() },
		Cut:    func(testing.TB) { b.Cut() },
	}
}
