package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Two headers make a message a request or a reply. If the driver keeps no headers, an envelope before
// the body and behind the stamp has them: magic 8, checksum 4, length of the identifier 1, length of
// the topic 2, identifier, topic; little-endian.

const (
	envelopeMagic = "xk6rpc\x00\x01"
	envelopeSum   = len(envelopeMagic)
	envelopeSizes = envelopeSum + 4
	envelopeTexts = envelopeSizes + 3
	maxReplyTo    = 1<<16 - 1
)

// correlate makes m a request or a reply with an identifier; the reply to a request goes to a topic.
// It leaves room of front bytes before an envelope.
func correlate(d *driver.Driver, m *driver.Message, id, replyTo string, front int) error {
	if !d.Features.Headers {
		m.Body = envelop(id, replyTo, m.Body, front)
		return nil
	}
	names := d.Correlation
	for i := range m.Headers {
		if name := m.Headers[i].Name; name == names.ID || name == names.ReplyTo {
			return fmt.Errorf("header %q is used to match requests and replies: choose another name", name)
		}
	}
	m.Headers = slices.Clip(m.Headers)
	if id != "" { // the request of another program may have none
		m.Headers = append(m.Headers, driver.Header{Name: names.ID, Value: []byte(id)})
	}
	if replyTo != "" {
		m.Headers = append(m.Headers, driver.Header{Name: names.ReplyTo, Value: []byte(replyTo)})
	}
	return nil
}

// correlation returns the identifier of a message and the topic for the reply; both may be empty.
func correlation(d *driver.Driver, m *driver.Message) (id, replyTo []byte) {
	for i := range m.Headers {
		switch h := &m.Headers[i]; h.Name {
		case d.Correlation.ID:
			id = h.Value
		case d.Correlation.ReplyTo:
			replyTo = h.Value
		}
	}
	return id, replyTo
}

// envelop copies a body behind an envelope, and leaves room before it.
func envelop(id, replyTo string, body []byte, front int) []byte {
	texts := front + envelopeTexts
	b := make([]byte, texts, texts+len(id)+len(replyTo)+len(body))
	e := b[front:]
	copy(e, envelopeMagic)
	e[envelopeSizes] = byte(len(id))                                         //gosec:disable G115 -- an identifier of ours
	binary.LittleEndian.PutUint16(e[envelopeSizes+1:], uint16(len(replyTo))) //gosec:disable G115 -- checked when it was chosen
	b = append(append(b, id...), replyTo...)
	binary.LittleEndian.PutUint32(e[envelopeSum:], crc32.Checksum(b[front+envelopeSizes:], castagnoli))
	return append(b, body...)
}

// unwrap turns the envelope of a message, if it has one, into headers.
func unwrap(d *driver.Driver, m *driver.Message) {
	b := m.Body
	if len(b) < envelopeTexts || string(b[:envelopeSum]) != envelopeMagic {
		return
	}
	sum, rest := binary.LittleEndian.Uint32(b[envelopeSum:]), b[envelopeTexts:]
	id, to := int(b[envelopeSizes]), int(binary.LittleEndian.Uint16(b[envelopeSizes+1:]))
	if len(rest) < id+to || crc32.Checksum(b[envelopeSizes:envelopeTexts+id+to], castagnoli) != sum {
		return
	}
	m.Headers = []driver.Header{{Name: d.Correlation.ID, Value: bytes.Clone(rest[:id])}}
	if to > 0 {
		m.Headers = append(m.Headers, driver.Header{Name: d.Correlation.ReplyTo, Value: bytes.Clone(rest[id : id+to])})
	}
	m.Body = rest[id+to:]
}
