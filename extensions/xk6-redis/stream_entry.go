package redis

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// The fields of an entry. Other fields arrive as headers.
const (
	keyField     = "key"
	bodyField    = "body"
	headerPrefix = "h:"
)

// xadd makes the command XADD.
type xadd struct {
	fixed []byte // the arguments up to the fields
	args  int    // how many those are
}

func newXadd(stream string, create bool, maxLen int64) xadd {
	args := []string{"XADD", stream}
	if !create {
		args = append(args, "NOMKSTREAM")
	}
	if maxLen > 0 {
		args = append(args, "MAXLEN", "~", strconv.FormatInt(maxLen, 10))
	}
	args = append(args, "*")
	x := xadd{args: len(args)}
	for _, a := range args {
		x.fixed = appendBulk(x.fixed, a)
	}
	return x
}

func (x xadd) command(b []byte, m *driver.Message) []byte {
	fields := 1 + len(m.Headers)
	if m.Key != nil {
		fields++
	}
	b = appendArray(b, x.args+2*fields)
	b = append(b, x.fixed...)
	if m.Key != nil {
		b = appendBulk(b, keyField)
		b = appendBulk(b, m.Key)
	}
	for _, h := range m.Headers {
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(headerPrefix)+len(h.Name)), 10)
		b = append(b, "\r\n"+headerPrefix...)
		b = append(b, h.Name...)
		b = append(b, '\r', '\n')
		b = appendBulk(b, h.Value)
	}
	b = appendBulk(b, bodyField)
	return appendBulk(b, m.Body)
}

// answer reads the entry's id; null means that the stream does not exist.
func (xadd) answer(r reader, place *driver.Place) error {
	var none bool
	var err error
	if place == nil {
		none, err = r.skip()
	} else {
		none, err = r.lend(func(id []byte) { place.Position = positionOf(id) })
	}
	if none {
		return errNoTopic
	}
	return err
}

// entryPlace returns the place of an entry. The first part of an id is the server's time in ms,
// unless the sender chose the id.
func entryPlace(m *driver.Message) driver.Place {
	d, ok := m.Token.(*delivery)
	if !ok {
		return driver.Place{}
	}
	place := driver.Place{Position: positionOf([]byte(d.id))}
	if ms := place.Position.Number; ms < math.MaxInt64/uint64(time.Millisecond) {
		place.Timestamp = int64(ms) * int64(time.Millisecond)
	}
	return place
}

// positionOf reads an entry's id, without a string.
func positionOf(id []byte) driver.Position {
	ms, number, ok := bytes.Cut(id, []byte("-"))
	first, err := strconv.ParseUint(string(ms), 10, 64)
	second, err2 := strconv.ParseUint(string(number), 10, 64)
	if !ok || err != nil || err2 != nil {
		return driver.Position{}
	}
	return driver.Position{Form: driver.Identifier, Number: first, Sub: second}
}

// entries reads an array of entries and calls f for each. Deleted entries have no fields and are
// left out.
func (r reader) entries(stream string, f func(d *delivery)) error {
	n, err := r.array()
	for range max(n, 0) {
		var d *delivery
		if d, err = r.entry(stream); err != nil {
			return err
		}
		if d != nil {
			f(d)
		}
	}
	return err
}

func (r reader) entry(stream string) (*delivery, error) {
	now := driver.Now()
	switch n, err := r.array(); {
	case err != nil:
		return nil, err
	case n == -1:
		return nil, nil
	case n != 2:
		return nil, errProtocol
	}
	id, err := r.text()
	if err != nil {
		return nil, err
	}
	n, err := r.array()
	if err != nil || n < 0 {
		return nil, err
	}
	d := &delivery{id: id, message: driver.Message{Topic: stream, Received: now, Attempt: 1}}
	for range n / 2 {
		if err := r.field(&d.message); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// field reads a field's name and value.
func (r reader) field(m *driver.Message) error {
	var to *[]byte
	err := r.peek(func(name []byte) {
		switch {
		case string(name) == bodyField:
			to = &m.Body
		case string(name) == keyField:
			to = &m.Key
		default:
			m.Headers = append(m.Headers, driver.Header{Name: string(bytes.TrimPrefix(name, []byte(headerPrefix)))})
			to = &m.Headers[len(m.Headers)-1].Value
		}
	})
	if err == nil {
		*to, err = r.bulk()
	}
	return err
}
