package amqp

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"

// streamPlace returns the offset of a message in its stream.
func streamPlace(m *driver.Message) driver.Place {
	t, ok := m.Token.(*token)
	if !ok { // a reply
		return driver.Place{}
	}
	return driver.Place{Position: driver.At(uint64(t.offset))} //gosec:disable G115 -- a position is not negative
}
