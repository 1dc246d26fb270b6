package payload

import (
	"math/bits"
	"math/rand/v2"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// variety is the number of bytes of noise at which random parts can begin. It is far more than
// compressors look back.
const variety = 1 << 20

// Maker fills messages. It is for one goroutine.
type Maker struct {
	spec  *Spec
	front int
	noise []byte // of the random parts, if they differ in size
	rng   *rand.Rand
	spare [64][][]byte // unused buffers of 2^i bytes
}

// Maker returns a maker of bodies with front bytes of the caller. Its own number makes the filling
// of its bodies.
func (s *Spec) Maker(front int, own uint64) *Maker {
	m := &Maker{spec: s, front: front}
	m.rng = rand.New(rand.NewPCG(s.Seed, own)) //gosec:disable G404 -- filler bytes, no secrets
	if _, fixed := s.Size.(Fixed); !fixed && s.Bodies == nil && s.Random > 0 && s.Random < 1 {
		m.noise = make([]byte, int(float64(s.Size.most())*s.Random)+variety)
		m.fill(m.noise)
	}
	return m
}

// Fill makes the n-th message of the load in place of an earlier or an empty one. It reuses the
// buffer.
func (m *Maker) Fill(message *driver.Message, n uint64) {
	s := m.spec
	if s.Keys != nil {
		message.Key = s.Keys.choose(n, s.draw(n, drawKey))
	}
	switch fixed, is := s.Size.(Fixed); {
	case s.Bodies != nil:
		m.given(message, n)
	case !is:
		size := s.Size.choose(n, s.draw(n, drawSize))
		message.Body = m.buffer(message.Body, size)
		m.vary(message.Body, n)
	case message.Body == nil: // of one size, only the front changes
		message.Body = make([]byte, fixed)
		m.fill(message.Body[:int(float64(fixed)*s.Random)])
	}
}

// given takes one of the given bodies, without a copy if nothing is in front.
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

// vary fills a body whose size has changed, if its random part is neither all nor nothing.
func (m *Maker) vary(body []byte, n uint64) {
	if m.noise == nil {
		return
	}
	random := int(float64(len(body)) * m.spec.Random)
	copy(body[:random], m.noise[below(m.spec.draw(n, drawNoise), variety):])
	clear(body[random:])
}

// buffer returns a buffer of a size in exchange for another. Each has a power of two of bytes, so
// that a few large messages do not make all buffers large.
func (m *Maker) buffer(had []byte, size int) []byte {
	class := bits.Len(uint(max(size, 1) - 1))
	if had != nil {
		if cap(had) == 1<<class {
			return had[:size]
		}
		old := bits.Len(uint(cap(had) - 1))
		m.spare[old] = append(m.spare[old], had)
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
		b[i] = byte(m.rng.Uint32()) //gosec:disable G115 -- random bits
	}
}
