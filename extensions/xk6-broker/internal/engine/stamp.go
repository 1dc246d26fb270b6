//gosec:disable G115 -- bits, no numbers
package engine

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// StampSize is the size in bytes of a stamp at the front of a body; in a header it is base64 text.
const StampSize = 40

// StampHeader is the name of the header that carries the stamp if the driver keeps headers.
const StampHeader = "X-K6-Stamp"

// Layout, little-endian: magic 2, run 4, producer 8, sequence 6, due 8, sent 8, checksum 4.
const (
	stampMagic   = 0x6b78 // "xk"
	stampSumAt   = StampSize - 4
	maxSequence  = 1<<48 - 1
	stampTextLen = (StampSize*8 + 5) / 6
	closedDue    = 0 // stands for the due time of a closed loop
)

// Stamp travels with a message, for its latency and its account at the other end.
type Stamp struct {
	Run      uint32 // the test; processes of one test share it
	Producer uint64
	Sequence uint64 // 48 bits
	Closed   bool   // sent in a closed loop, where due is sent
	Due      int64  // ns since the Unix epoch, by the sender's clock
	Sent     int64

	front int // bytes of the body that it took
}

// loop returns which loop sent it.
func (s *Stamp) loop() recording.Loop {
	if s.Closed {
		return recording.Closed
	}
	return recording.Open
}

// mark is the kind of stamp that a message has.
type mark uint8

const (
	unstamped mark = iota // none, such as a message of another program
	corrupt               // a damaged one of this run
	stamped
)

var (
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
	stampBase64 = base64.RawStdEncoding
)

// put writes the stamp into dst[:StampSize]; its checksum covers the stamp and the payload.
func (s *Stamp) put(dst, payload []byte) {
	_ = dst[StampSize-1]
	binary.LittleEndian.PutUint16(dst, stampMagic)
	binary.LittleEndian.PutUint32(dst[2:], s.Run)
	binary.LittleEndian.PutUint64(dst[6:], s.Producer)
	binary.LittleEndian.PutUint32(dst[14:], uint32(s.Sequence))
	binary.LittleEndian.PutUint16(dst[18:], uint16(s.Sequence>>32))
	due := uint64(s.Due)
	if s.Closed {
		due = closedDue
	}
	binary.LittleEndian.PutUint64(dst[20:], due)
	binary.LittleEndian.PutUint64(dst[28:], uint64(s.Sent))
	binary.LittleEndian.PutUint32(dst[stampSumAt:], checksum(dst[:stampSumAt], payload))
}

// get reads the stamp of a payload.
func (s *Stamp) get(run uint32, src, payload []byte) mark {
	s.front = 0
	if len(src) < StampSize || binary.LittleEndian.Uint16(src) != stampMagic {
		return unstamped
	}
	s.Run = binary.LittleEndian.Uint32(src[2:])
	s.Producer = binary.LittleEndian.Uint64(src[6:])
	s.Sequence = uint64(binary.LittleEndian.Uint32(src[14:])) | uint64(binary.LittleEndian.Uint16(src[18:]))<<32
	due := binary.LittleEndian.Uint64(src[20:])
	s.Sent = int64(binary.LittleEndian.Uint64(src[28:]))
	s.Closed, s.Due = due == closedDue, int64(due)
	if s.Closed {
		s.Due = s.Sent
	}
	switch {
	case binary.LittleEndian.Uint32(src[stampSumAt:]) == checksum(src[:stampSumAt], payload):
		return stamped
	case s.Run == run:
		return corrupt
	}
	return unstamped
}

func checksum(stamp, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(stamp, castagnoli), castagnoli, payload)
}

// take reads the stamp of a received message, from its header or the front of its body, and takes
// it off. Without a valid one the message stays as it is.
func (s *Stamp) take(m *driver.Message, run uint32) (is mark) {
	for i := range m.Headers {
		if m.Headers[i].Name != StampHeader {
			continue
		}
		var raw [StampSize]byte
		if len(m.Headers[i].Value) != stampTextLen {
			return unstamped
		}
		if _, err := stampBase64.Decode(raw[:], m.Headers[i].Value); err != nil {
			return unstamped
		}
		if is = s.get(run, raw[:], m.Body); is == stamped {
			m.Headers = append(m.Headers[:i:i], m.Headers[i+1:]...)
		}
		return is
	}
	if len(m.Body) < StampSize {
		return unstamped
	}
	if is = s.get(run, m.Body[:StampSize], m.Body[StampSize:]); is == stamped {
		m.Body, s.front = m.Body[StampSize:], StampSize
	}
	return is
}

// StampMode is where a producer puts its stamps.
type StampMode string

// Stamp modes.
const (
	StampAuto     StampMode = "auto"   // see [StampMode.Resolve]
	StampInHeader StampMode = "header" // always a header
	StampInBody   StampMode = "body"   // always the front of the body
	StampOff      StampMode = "off"    // none: no end-to-end latency and no accounting
)

// Resolve returns the mode that auto means for a driver, and an error for one that it cannot have.
// Generated messages have their stamp in the body, a script's own in a header if there are headers.
func (m StampMode) Resolve(f driver.Features, generated bool) (StampMode, error) {
	switch m {
	case "", StampAuto:
		if f.Start == 0 {
			return StampOff, nil
		}
		if f.Headers && !generated {
			return StampInHeader, nil
		}
		return StampInBody, nil
	case StampInHeader:
		if !f.Headers {
			return "", errors.New(`option "stamp": this broker has no headers: choose body or off`)
		}
		return m, nil
	case StampInBody, StampOff:
		return m, nil
	}
	return "", fmt.Errorf(`option "stamp": %q is not one of auto, header, body, off`, string(m))
}

// Front returns how many bytes of a body the stamp takes.
func (m StampMode) Front() int {
	if m == StampInBody {
		return StampSize
	}
	return 0
}

// attachStamp makes room for a stamp in a script's message.
func attachStamp(m *driver.Message, mode StampMode) {
	switch mode {
	case StampInHeader:
		m.Headers = append(m.Headers, driver.Header{Name: StampHeader, Value: make([]byte, stampTextLen)})
	case StampInBody:
		body := make([]byte, StampSize+len(m.Body))
		copy(body[StampSize:], m.Body)
		m.Body = body
	case StampAuto, StampOff:
	}
}

// writeStamp fills the room that attachStamp made. raw is room for the stamp of a header.
func writeStamp(s *Stamp, m *driver.Message, mode StampMode, raw *[StampSize]byte) {
	if mode == StampInBody {
		s.put(m.Body, m.Body[StampSize:])
		return
	}
	s.put(raw[:], m.Body)
	stampBase64.Encode(m.Headers[len(m.Headers)-1].Value, raw[:])
}
