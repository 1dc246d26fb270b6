package payload

import (
	"fmt"
	"math"
	"strconv"
)

// Keys chooses the key of a message.
type Keys interface {
	of(n, random uint64) []byte
	fmt.Stringer
}

// named are the keys "key-0", "key-1", …, which all messages share.
type named [][]byte

func newNamed(count int) named {
	keys := make(named, count)
	for i := range keys {
		keys[i] = strconv.AppendInt([]byte("key-"), int64(i), 10)
	}
	return keys
}

type inTurn struct{ named }

// InTurn has so many keys, one after the other.
func InTurn(count int) Keys { return inTurn{newNamed(count)} }

func (k inTurn) of(n, _ uint64) []byte { return k.named[n%uint64(len(k.named))] }
func (k inTurn) String() string        { return strconv.Itoa(len(k.named)) }

type atRandom struct{ named }

// AtRandom has so many keys, all equally often.
func AtRandom(count int) Keys { return atRandom{newNamed(count)} }

func (k atRandom) of(_, random uint64) []byte { return k.named[below(random, len(k.named))] }
func (k atRandom) String() string             { return fmt.Sprintf("%d, uniform", len(k.named)) }

type zipf struct {
	named
	exponent float64
	by       *weighted
}

// Zipf has so many keys, the i-th of them, from 1, as often as 1/i^exponent says.
func Zipf(count int, exponent float64) Keys {
	weights := make([]float64, count)
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -exponent)
	}
	return zipf{newNamed(count), exponent, newWeighted(weights)}
}

func (k zipf) of(_, random uint64) []byte { return k.named[k.by.of(random)] }
func (k zipf) String() string {
	return fmt.Sprintf("%d, zipf with exponent %g", len(k.named), k.exponent)
}

type recordedKeys [][]byte

// RecordedKeys has the keys of a trace, one after the other, and over again; nil where a message has none.
func RecordedKeys(keys [][]byte) Keys { return recordedKeys(keys) }

func (k recordedKeys) of(n, _ uint64) []byte { return k[n%uint64(len(k))] }
func (k recordedKeys) String() string        { return "of the trace" }
