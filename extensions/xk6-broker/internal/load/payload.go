package load

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// Payload describes generated messages.
type Payload struct {
	// Size of the body in bytes, the stamp included where it is in the body.
	Size int
	// Random is the share of the body that is random, from 0 to 1; the rest is zeros. It decides how well brokers and
	// clients can compress.
	Random float64
	// Keys is how many different keys are used in turn; 0 for messages without a key.
	Keys int
}

// Check says what is wrong with the payload for messages stamped like that.
func (p Payload) Check(stamp StampMode) error {
	switch {
	case p.Size < 0:
		return fmt.Errorf(`option "payload.size": %d is negative`, p.Size)
	case stamp == StampInBody && p.Size < StampSize:
		return fmt.Errorf(`option "payload.size": %d is less than the %d bytes of the trace stamp: `+
			`make it larger, or set the producer's option "stamp" to header or off`, p.Size, StampSize)
	case p.Random < 0 || p.Random > 1:
		return fmt.Errorf(`option "payload.random": %v is not from 0 to 1`, p.Random)
	case p.Keys < 0:
		return fmt.Errorf(`option "payload.keys": %d is negative`, p.Keys)
	}
	return nil
}

// body makes one body. Its bytes are random once; only the stamp changes from message to message.
func (p Payload) body(rng *rand.Rand) []byte {
	b := make([]byte, p.Size)
	for i := range int(float64(p.Size) * p.Random) {
		b[i] = byte(rng.Uint32()) //gosec:disable G115 -- bits, no number
	}
	return b
}

// keys makes the keys, which all messages share.
func (p Payload) keys() [][]byte {
	keys := make([][]byte, p.Keys)
	for i := range keys {
		keys[i] = strconv.AppendInt([]byte("key-"), int64(i), 10)
	}
	return keys
}
