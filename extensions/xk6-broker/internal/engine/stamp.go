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

// StampSize is how many bytes the trace stamp takes at the front of a body; in a header it is base64 text.
const StampSize = 40

// StampHeader is the name of the header that carries the trace stamp where the driver keeps headers.
const StampHeader = "X-K6-Stamp"

// Layout, little-endian: magic 2, run 4, producer 8, sequence 6, due 8, sent 8, checksum 4.
const (
	stampMagic   = 0x6b78 // "xk"
	stampSumAt   = StampSize - 4
	maxSequence  = 1<<48 - 1
	stampTextLen = (StampSize*8 + 5) / 6
	closedDue    = 0 // stands for the due time of a closed loop
)

// Stamp is what travels with a message so that its latency and its fate can be told at the other end.
type Stamp struct {
	Run      uint32 // the test; processes of one test share it
	Producer uint64
	Sequence uint64 // 48 bits
	Closed   bool   // sent in a closed loop, where due is sent
	Due      int64  // ns since the Unix epoch, by the sender's clock
	Sent     int64

	inBody bool // where it was found
}

// loop is which loop sent it.
func (s *Stamp) loop() recording.Loop {
	if s.Closed {
		return recording.Closed
	}
	return recording.Open
}

var (
	errNoStamp = errors.New("no stamp")
	errCorrupt = errors.New("the stamp's checksum does not match")

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

// get reads a stamp that stands before payload. A foreign body gives errNoStamp, a damaged one errCorrupt.
func (s *Stamp) get(src, payload []byte) error {
	if len(src) < StampSize || binary.LittleEndian.Uint16(src) != stampMagic {
		return errNoStamp
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
	if binary.LittleEndian.Uint32(src[stampSumAt:]) != checksum(src[:stampSumAt], payload) {
		return errCorrupt
	}
	return nil
}

func checksum(stamp, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(stamp, castagnoli), castagnoli, payload)
}

// take reads the stamp of a received message, from its header or else from the front of its body, and takes it off.
// Where there is none, or a damaged one, the message is left as it is. What only looks like a stamp, or like one of another run that does
// not check, is taken for no stamp at all.
func (s *Stamp) take(m *driver.Message, run uint32) error {
	for i := range m.Headers {
		if m.Headers[i].Name != StampHeader {
			continue
		}
		var raw [StampSize]byte
		if len(m.Headers[i].Value) != stampTextLen {
			return errNoStamp
		}
		if _, err := stampBase64.Decode(raw[:], m.Headers[i].Value); err != nil {
			return errNoStamp
		}
		if err := s.of(run, raw[:], m.Body); err != nil {
			return err
		}
		m.Headers = append(m.Headers[:i:i], m.Headers[i+1:]...)
		return nil
	}
	if len(m.Body) < StampSize {
		return errNoStamp
	}
	if err := s.of(run, m.Body[:StampSize], m.Body[StampSize:]); err != nil {
		return err
	}
	m.Body, s.inBody = m.Body[StampSize:], true
	return nil
}

// of is get, by which only what may be a stamp of this run can be damaged.
func (s *Stamp) of(run uint32, src, payload []byte) error {
	s.inBody = false
	err := s.get(src, payload)
	if err != nil && s.Run != run {
		return errNoStamp
	}
	return err
}

// size is how many bytes of a body the stamp took.
func (s *Stamp) size() int {
	if s.inBody {
		return StampSize
	}
	return 0
}

// StampMode is where a producer puts its stamps.
type StampMode string

// Stamp modes.
const (
	StampAuto     StampMode = "auto"   // a script's messages: header where there are headers, else body; generated ones: body; none where nothing is received
	StampInHeader StampMode = "header" // always a header
	StampInBody   StampMode = "body"   // always the front of the body
	StampOff      StampMode = "off"    // none: no end-to-end latency and no accounting
)

// Resolve turns auto into what it means for a driver, and says where a mode cannot be had. Generated messages carry their
// stamp in the body, which costs no more bytes than were asked for; a script's own go out as the script made them.
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

// Front is how many bytes of a body come before what is sent.
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

// writeStamp fills the room that attachStamp made. It makes a stamp for a header in raw, which is the caller's as it would not be on the stack.
func writeStamp(s *Stamp, m *driver.Message, mode StampMode, raw *[StampSize]byte) {
	if mode == StampInBody {
		s.put(m.Body, m.Body[StampSize:])
		return
	}
	s.put(raw[:], m.Body)
	stampBase64.Encode(m.Headers[len(m.Headers)-1].Value, raw[:])
}
