// Package payload makes the messages of a load: bodies, sizes and keys. Message n depends on a seed
// and on n alone, so that any number of senders makes the same load again.
package payload

import (
	"errors"
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Spec describes the messages.
type Spec struct {
	// Size is the size of generated bodies in bytes, with the caller's bytes in front.
	Size Sizes
	// Random is the random share of a generated body, 0 to 1, for compression. The rest is zeros.
	Random float64
	// Keys chooses the key; nil for messages without keys.
	Keys Keys
	// Bodies are sent in place of generated ones, in turn or, if Shuffled, at random. They are read
	// only.
	Bodies   [][]byte
	Shuffled bool
	// Headers and Properties are the same for all messages.
	Headers    []driver.Header
	Properties driver.Values
	// Seed makes the choices. Equal seeds make equal messages.
	Seed uint64
}

var errNoBodies = errors.New(`option "payload.bodies": there is none`)

// Check returns an error of the options. Each body has front bytes of the caller.
func (s *Spec) Check(front int) error {
	switch {
	case s.Random < 0 || s.Random > 1:
		return fmt.Errorf(`option "payload.random": %v is not from 0 to 1`, s.Random)
	case s.Bodies != nil && len(s.Bodies) == 0:
		return errNoBodies
	case s.Bodies != nil:
		return nil
	}
	if least := s.Size.Least(); least < front {
		return fmt.Errorf(`option "payload.size": %d is less than the %d bytes of the trace stamp: `+
			`make it larger, or set the producer's option "stamp" to header or off`, least, front)
	}
	return nil
}

// Mean returns the mean size of a body in bytes, of given bodies without the caller's bytes.
func (s *Spec) Mean() float64 {
	if s.Bodies == nil {
		return s.Size.Mean()
	}
	sum := 0.0
	for _, b := range s.Bodies {
		sum += float64(len(b))
	}
	return sum / float64(len(s.Bodies))
}

// The purposes of a draw.
const (
	drawSize = iota
	drawKey
	drawBody
	_ // was the size of a batch
	drawNoise
)

// draw returns 64 random bits for one purpose of message n, independent of other messages: the
// finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// 2014) over a counter.
func (s *Spec) draw(n uint64, purpose uint64) uint64 {
	const golden = 0x9e3779b97f4a7c15
	return mix(mix(s.Seed+purpose*golden) + (n+1)*golden)
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
