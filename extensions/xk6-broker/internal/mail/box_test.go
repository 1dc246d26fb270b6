package mail_test

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/mail"
)

func TestNamesBesideOthers(t *testing.T) {
	for of, want := range map[string]string{
		"orders": "orders-r", "orders.eu.north": "orders-r.eu.north", "orders.fifo": "orders-r.fifo", "persistent://a/b.c/orders": "persistent://a/b.c/orders-r",
		".hidden": "r.hidden", "a/": "a/r",
	} {
		if got := mail.Beside(of, "r"); got != want {
			t.Errorf("%s: %s, want %s", of, got, want)
		}
	}
}
