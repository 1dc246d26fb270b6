package amqp

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// broker settles as RabbitMQ does, and says where RabbitMQ would close the channel.
type broker struct {
	t    *testing.T
	open map[uint64]bool
}

func (b *broker) settle(tag uint64, multiple bool) {
	if !b.open[tag] {
		b.t.Fatalf("tag %d is settled twice, or was never delivered", tag)
	}
	for other := range b.open {
		if other == tag || multiple && other < tag {
			delete(b.open, other)
		}
	}
}

// TestSettled settles random parts of what is delivered and compares with what a broker makes of the frames.
func TestSettled(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		b := &broker{t, map[uint64]bool{}}
		var l settled
		want := map[uint64]bool{}
		frames, settled, delivered := 0, 0, uint64(0)
		for range 200 {
			for range r.IntN(20) {
				delivered++
				b.open[delivered], want[delivered] = true, true
			}
			var tags []uint64
			for tag := range want {
				if r.IntN(4) > int(seed%4) { // by seed from nearly everything to little
					tags = append(tags, tag)
				}
			}
			slices.Sort(tags)
			for _, tag := range tags {
				if l.has(tag) {
					t.Fatalf("seed %d: tag %d is not settled yet", seed, tag)
				}
				delete(want, tag)
			}
			together := l.settle(tags)
			if together > 0 {
				b.settle(tags[together-1], together > 1)
				frames++
			}
			for _, tag := range tags[together:] {
				b.settle(tag, false)
				frames++
			}
			settled += len(tags)
			if len(b.open) != len(want) {
				t.Fatalf("seed %d: the broker has %d unsettled, want %d", seed, len(b.open), len(want))
			}
			for tag := range want {
				if !b.open[tag] {
					t.Fatalf("seed %d: tag %d was settled and should not be", seed, tag)
				}
			}
		}
		if int(l.count) != settled || frames > settled {
			t.Fatalf("seed %d: counted %d, settled %d with %d frames", seed, l.count, settled, frames)
		}
	}
}

// What comes in order is settled by one frame for each batch.
func TestSettledInOrder(t *testing.T) {
	var l settled
	for first := uint64(1); first < 1000; first += 10 {
		tags := make([]uint64, 10)
		for i := range tags {
			tags[i] = first + uint64(i)
		}
		if together := l.settle(tags); together != len(tags) || len(l.above) > 0 {
			t.Fatalf("%d of %d together", together, len(tags))
		}
	}
}
