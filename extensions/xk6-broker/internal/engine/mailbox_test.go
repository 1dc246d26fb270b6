package engine

import "testing"

func TestNamesBesideOthers(t *testing.T) {
	for of, want := range map[string]string{
		"orders": "orders-r", "orders.eu.north": "orders-r.eu.north", "orders.fifo": "orders-r.fifo", "persistent://a/b.c/orders": "persistent://a/b.c/orders-r",
		".hidden": "r.hidden", "a/": "a/r",
	} {
		if got := besideTopic(of, "r"); got != want {
			t.Errorf("%s: %s, want %s", of, got, want)
		}
	}
}
