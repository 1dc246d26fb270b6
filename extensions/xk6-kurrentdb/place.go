package kurrentdb

import (
	"strconv"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// place returns an event's revision and the time when the server wrote it.
func place(m *driver.Message) driver.Place {
	d, ok := m.Token.(*delivery)
	if !ok {
		return driver.Place{}
	}
	p := driver.Place{Position: driver.At(d.revision)}
	if ticks, err := strconv.ParseInt(d.created, 10, 64); err == nil {
		p.Timestamp = 100 * ticks // of 100 ns, since the Unix epoch
	}
	return p
}
