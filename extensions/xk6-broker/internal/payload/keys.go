package payload

import (
	"math"
	"strconv"
)

// Keys chooses the key of a message.
type Keys interface {
	choose(n, random uint64) []byte
}

// named are the keys "key-0", "key-1", …, shared by all messages.
type named [][]byte

func newNamed(count int) named {
	keys := make(named, count)
	for i := range keys {
		keys[i] = strconv.AppendInt([]byte("key-"), int64(i), 10)
	}
	return keys
}

type inTurn struct{ named }

// InTurn returns count keys, one after the other.
func InTurn(count int) Keys { return inTurn{newNamed(count)} }

func (k inTurn) choose(n, _ uint64) []byte { return k.named[n%uint64(len(k.named))] }

type atRandom struct{ named }

// AtRandom returns count keys, all equally likely.
func AtRandom(count int) Keys { return atRandom{newNamed(count)} }

func (k atRandom) choose(_, random uint64) []byte { return k.named[below(random, len(k.named))] }

type zipf struct {
	named
	by *weighted
}

// Zipf returns count keys, the i-th, from 1, with the weight 1/i^exponent.
func Zipf(count int, exponent float64) Keys {
	weights := make([]float64, count)
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -exponent)
	}
	return zipf{newNamed(count), newWeighted(weights)}
}

func (k zipf) choose(_, random uint64) []byte { return k.named[k.by.choose(random)] }

type recordedKeys [][]byte

// RecordedKeys returns the keys of a trace, one after the other, repeatedly. A nil key is none.
func RecordedKeys(keys [][]byte) Keys { return recordedKeys(keys) }

func (k recordedKeys) choose(n, _ uint64) []byte { return k[n%uint64(len(k))] }
