package payload

import (
	"math/bits"
	"math/rand/v2"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// variety is how many bytes of noise the random parts of messages begin in: far more than a client or a broker looks back to compress.
const variety = 1 << 20

// Maker fills messages in. It serves one goroutine.
type Maker struct {
	spec  *Spec
	front int
	// noise is what the random part of bodies is, where that part is not the same in all.
	noise []byte
	rng   *rand.Rand
	spare [64][][]byte // buffers of 2^i bytes that no message has now
}

// Maker makes one whose bodies have so many bytes in front that are the caller's. Bodies of different makers differ.
func (s *Spec) Maker(front int, own uint64) *Maker {
	m := &Maker{spec: s, front: front, rng: rand.New(rand.NewPCG(s.Seed, own))} //gosec:disable G404 -- filler bytes, no secrets
	if _, fixed := s.Size.(Fixed); !fixed && s.Bodies == nil && s.Random > 0 && s.Random < 1 {
		m.noise = make([]byte, int(float64(s.Size.most())*s.Random)+variety)
		m.fill(m.noise)
	}
	return m
}

// Fill makes the n-th message of the load, in place of one that it made before or of an empty one, whose buffer is used again.
func (m *Maker) Fill(message *driver.Message, n uint64) {
	s := m.spec
	if s.Keys != nil {
		message.Key = s.Keys.of(n, s.draw(n, drawKey))
	}
	switch fixed, is := s.Size.(Fixed); {
	case s.Bodies != nil:
		m.given(message, n)
	case !is:
		size := s.Size.of(n, s.draw(n, drawSize))
		message.Body = m.buffer(message.Body, size)
		m.vary(message.Body, n)
	case message.Body == nil: // of one size only the front changes
		message.Body = make([]byte, fixed)
		m.fill(message.Body[:int(float64(fixed)*s.Random)])
	}
}

// given sends a body that somebody else has, as it is where nothing stands before it.
func (m *Maker) given(message *driver.Message, n uint64) {
	s := m.spec
	i := n % uint64(len(s.Bodies))
	if s.Shuffled {
		i = uint64(below(s.draw(n, drawBody), len(s.Bodies))) //gosec:disable G115 -- not negative
	}
	body := s.Bodies[i]
	if m.front == 0 {
		message.Body = body
		return
	}
	message.Body = m.buffer(message.Body, m.front+len(body))
	copy(message.Body[m.front:], body)
}

// vary gives a body whose size has changed its random part again, where that is not all or nothing.
func (m *Maker) vary(body []byte, n uint64) {
	if m.noise == nil {
		return
	}
	random := int(float64(len(body)) * m.spec.Random)
	copy(body[:random], m.noise[below(m.spec.draw(n, drawNoise), variety):])
	clear(body[random:])
}

// buffer gives one of that size, in exchange for one that it gave before. Each is of a power of two, so that a few large messages do not make all
// buffers large.
func (m *Maker) buffer(had []byte, size int) []byte {
	class := bits.Len(uint(max(size, 1) - 1))
	if had != nil {
		if cap(had) == 1<<class {
			return had[:size]
		}
		of := bits.Len(uint(cap(had) - 1))
		m.spare[of] = append(m.spare[of], had)
	}
	if last := len(m.spare[class]) - 1; last >= 0 {
		spare := m.spare[class][last]
		m.spare[class] = m.spare[class][:last]
		return spare[:size]
	}
	made := make([]byte, size, 1<<class)
	if m.noise == nil && m.spec.Bodies == nil && m.spec.Random > 0 {
		m.fill(made[:cap(made)])
	}
	return made
}

func (m *Maker) fill(b []byte) {
	for i := range b {
		b[i] = byte(m.rng.Uint32()) //gosec:disable G115 -- bits, no number
	}
}
