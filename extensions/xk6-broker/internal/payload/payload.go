// Package payload makes the messages of a load: bodies, sizes and keys that look like somebody's. What message n is like follows from a seed and from n
// alone, so that the same load can be had again, by however many senders.
package payload

import (
	"errors"
	"fmt"
	"math"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Spec says what messages are like.
type Spec struct {
	// Size is how many bytes a body has, those in front of it included that are the caller's; of generated bodies.
	Size Sizes
	// Random is the share of a generated body that is random, from 0 to 1; the rest is zeros. It decides how well brokers and clients can compress.
	Random float64
	// Keys chooses the key; nil for messages without one.
	Keys Keys
	// Bodies are those to send, in place of generated ones: in turn, or Shuffled, each as often as any other on average. They are read only.
	Bodies   [][]byte
	Shuffled bool
	// Headers and Properties are the same for all messages.
	Headers    []driver.Header
	Properties driver.Values
	// Seed makes the choices: equal seeds, equal messages.
	Seed uint64
}

var errNoBodies = errors.New(`option "payload.bodies": there is none`)

// Check says what is wrong with it, where each body has so many bytes in front that are the caller's.
func (s *Spec) Check(front int) error {
	switch {
	case s.Random < 0 || s.Random > 1:
		return fmt.Errorf(`option "payload.random": %v is not from 0 to 1`, s.Random)
	case s.Bodies != nil && len(s.Bodies) == 0:
		return errNoBodies
	case s.Bodies != nil:
		return nil
	}
	if mean := s.Size.Mean(); math.IsNaN(mean) || math.IsInf(mean, 0) {
		return fmt.Errorf(`option "payload.size": %v has next to nothing between its bounds`, s.Size)
	}
	if least := s.Size.Least(); least < front {
		return fmt.Errorf(`option "payload.size": %d is less than the %d bytes of the trace stamp: `+
			`make it larger, or set the producer's option "stamp" to header or off`, least, front)
	}
	return nil
}

// Mean is how many bytes a body has on average, without those in front of bodies that are given.
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

// What a draw is for.
const (
	drawSize = iota
	drawKey
	drawBody
	drawBatch
	drawNoise
)

// draw gives 64 random bits for one purpose of message n: the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014) over a counter, so that no message's depend on another's.
func (s *Spec) draw(n uint64, purpose uint64) uint64 {
	const golden = 0x9e3779b97f4a7c15
	return mix(mix(s.Seed+purpose*golden) + (n+1)*golden)
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Batch is how many messages go in the n-th batch: from least to most, all of them equally often.
func (s *Spec) Batch(n uint64, least, most int) int {
	return least + below(s.draw(n, drawBatch), most-least+1)
}
