package payload

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// What message n is like follows from the seed and n, whoever makes it and whatever was made before.
func TestTheSameMessages(t *testing.T) {
	for _, s := range []*Spec{
		{Size: Uniform(0, 300), Keys: Zipf(50, 1.1), Seed: 7},
		{Size: Uniform(100, 2000), Random: 0.5, Keys: AtRandom(10), Seed: 7},
		{Size: Mixed([]int{10, 5000}, []float64{9, 1}), Random: 1, Keys: InTurn(3), Seed: 7},
		{Bodies: [][]byte{[]byte("a"), []byte("bcd"), {}}, Shuffled: true, Seed: 7},
	} {
		like := func(m driver.Message) string { return fmt.Sprint(len(m.Body), string(m.Key)) }
		var whole, parts [1000]string
		one := s.Maker(0, 1)
		for n := range whole {
			var m driver.Message
			one.Fill(&m, uint64(n))
			whole[n] = like(m)
		}
		for share := range 3 {
			maker := s.Maker(0, uint64(share))
			var m driver.Message
			for n := share; n < len(parts); n += 3 {
				maker.Fill(&m, uint64(n))
				parts[n] = like(m)
			}
		}
		if whole != parts {
			t.Errorf("%v: three senders make other messages than one", s.Size)
		}
		other := *s
		other.Seed = 8
		differ := 0
		maker := other.Maker(0, 1)
		for n := range whole {
			var m driver.Message
			maker.Fill(&m, uint64(n))
			if like(m) != whole[n] {
				differ++
			}
		}
		if differ < 100 {
			t.Errorf("%v: another seed makes %d other messages of %d", s.Size, differ, len(whole))
		}
	}
}

// close tells whether a count is within six standard deviations of what is expected.
func near(got int, n int, p float64) bool {
	return math.Abs(float64(got)-float64(n)*p) <= 6*math.Sqrt(float64(n)*p*(1-p))+1
}

func TestKeys(t *testing.T) {
	const n = 200_000
	for _, c := range []struct {
		keys  Keys
		share func(i int) float64
		count int
	}{
		{InTurn(7), func(int) float64 { return 1. / 7 }, 7},
		{AtRandom(7), func(int) float64 { return 1. / 7 }, 7},
		{Zipf(100, 1), func(i int) float64 { return 1 / float64(i+1) / 5.187377517639621 }, 100},
		{Zipf(3, 2), func(i int) float64 { return 1 / float64((i+1)*(i+1)) / (1 + 1./4 + 1./9) }, 3},
		{Zipf(4, 0), func(int) float64 { return 1. / 4 }, 4},
		{Zipf(1, 1), func(int) float64 { return 1 }, 1},
	} {
		s := &Spec{Size: Fixed(1), Keys: c.keys, Seed: 1}
		maker := s.Maker(0, 0)
		got := map[string]int{}
		var m driver.Message
		for i := range uint64(n) {
			maker.Fill(&m, i)
			got[string(m.Key)]++
		}
		sum := 0
		for i := range c.count {
			count := got[fmt.Sprint("key-", i)]
			if sum += count; !near(count, n, c.share(i)) {
				t.Errorf("%v: key %d %d times of %d, want %.0f", c.keys, i, count, n, c.share(i)*n)
			}
		}
		if sum != n {
			t.Errorf("%v: %d messages have none of its keys", c.keys, n-sum)
		}
	}
}

func TestSizes(t *testing.T) {
	const n = 200_000
	for _, c := range []struct {
		sizes       Sizes
		least, most int
		mean        float64
		below       map[int]float64 // the share of sizes that are less
	}{
		{Fixed(100), 100, 100, 100, map[int]float64{100: 0, 101: 1}},
		{Uniform(100, 299), 100, 299, 199.5, map[int]float64{150: 0.25, 200: 0.5, 299: 0.995}},
		{Uniform(5, 5), 5, 5, 5, nil},
		{Mixed([]int{64, 1024, 0}, []float64{8, 1, 1}), 0, 1024, 153.6, map[int]float64{1: 0.1, 65: 0.9}},
		{Recorded([]int32{10, 20, 60}), 10, 60, 30, map[int]float64{20: 1. / 3, 60: 2. / 3}},
	} {
		s := &Spec{Size: c.sizes, Seed: 3}
		var all []int
		sum := 0.0
		for i := range uint64(n) {
			size := c.sizes.choose(i, s.draw(i, drawSize))
			all = append(all, size)
			sum += float64(size)
		}
		slices.Sort(all)
		if all[0] < c.least || all[n-1] > c.most {
			t.Errorf("%v: from %d to %d", c.sizes, all[0], all[n-1])
		}
		if mean := sum / n; math.Abs(mean-c.mean) > 0.01*c.mean || math.Abs(c.sizes.Mean()-c.mean) > 0.01*c.mean {
			t.Errorf("%v: the mean is %v, and it says %v", c.sizes, mean, c.sizes.Mean())
		}
		for at, share := range c.below {
			if less, _ := slices.BinarySearch(all, at); !near(less, n, share) {
				t.Errorf("%v: %d of %d are less than %d, want %.0f", c.sizes, less, n, at, share*n)
			}
		}
	}
}

// Bodies that are on their way keep their bytes and are nobody else's, whatever sizes come after them.
func TestBuffersAreOneMessagesAtATime(t *testing.T) {
	s := &Spec{Size: Mixed([]int{1, 2, 3, 100, 5000}, []float64{1, 1, 1, 5, 1}), Random: 1, Seed: 4}
	maker := s.Maker(0, 0)
	flights := make([][]driver.Message, 10)
	for n, round := uint64(0), 0; round < 1000; round++ {
		of := round * 7 % len(flights)
		flight := flights[of]
		for i, m := range flight { // it has landed: all is as it was
			if want := byte(of*31 + i); slices.ContainsFunc(m.Body, func(b byte) bool { return b != want }) {
				t.Fatalf("a body on its way has changed")
			}
		}
		if flight == nil {
			flight = make([]driver.Message, 8)
		}
		for i := range flight {
			maker.Fill(&flight[i], n)
			n++
			for at := range flight[i].Body {
				flight[i].Body[at] = byte(of*31 + i)
			}
		}
		flights[of] = flight
	}
}

// The random share of a body holds for each size, and compresses as it says.
func TestTheRandomShare(t *testing.T) {
	for _, size := range []Sizes{Fixed(1000), Uniform(100, 1000)} {
		for _, share := range []float64{0, 0.25, 1} {
			s := &Spec{Size: size, Random: share, Seed: 5}
			maker := s.Maker(0, 0)
			var m driver.Message
			for n := range uint64(200) {
				maker.Fill(&m, n)
				zeros, tail := bytes.Count(m.Body, []byte{0}), int(float64(len(m.Body))*share)
				if least := len(m.Body) - tail; zeros < least || zeros > least+tail/8+3 {
					t.Fatalf("%v, random %v: %d of %d bytes are zeros", size, share, zeros, len(m.Body))
				}
			}
		}
	}
}

// A batch of messages compresses as each of them would.
func TestMessagesAreNotAlike(t *testing.T) {
	for _, size := range []Sizes{Fixed(1000), Uniform(1000, 1001)} {
		for _, share := range []float64{0.5, 0.99, 1} {
			s := &Spec{Size: size, Random: share, Seed: 5}
			maker := s.Maker(0, 0)
			var packed bytes.Buffer
			z, all := gzip.NewWriter(&packed), 0
			for n := range uint64(64) {
				var m driver.Message
				maker.Fill(&m, n)
				all += len(m.Body)
				if _, err := z.Write(m.Body); err != nil {
					t.Fatal(err)
				}
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			if got := float64(packed.Len()) / float64(all); got < 0.9*share || got > 1.1*share+0.05 {
				t.Errorf("%v, random %v: compressed to %.3f", size, share, got)
			}
		}
	}
}

func TestGivenBodies(t *testing.T) {
	bodies := [][]byte{[]byte("one"), []byte("three"), {}}
	s := &Spec{Bodies: bodies, Seed: 1}
	for front := range 3 {
		maker := s.Maker(front, 0)
		var m driver.Message
		for n := range uint64(9) {
			maker.Fill(&m, n)
			if want := bodies[n%3]; len(m.Body) != front+len(want) || !bytes.Equal(m.Body[front:], want) {
				t.Errorf("front %d, message %d: %q", front, n, m.Body)
			}
		}
	}
	shuffled := &Spec{Bodies: bodies, Shuffled: true, Seed: 1}
	maker := shuffled.Maker(0, 0)
	count := map[string]int{}
	var m driver.Message
	for n := range uint64(30_000) {
		maker.Fill(&m, n)
		count[string(m.Body)]++
	}
	for _, body := range bodies {
		if !near(count[string(body)], 30_000, 1./3) {
			t.Errorf("%q came %d times", body, count[string(body)])
		}
	}
	if string(bodies[1]) != "three" {
		t.Error("a given body was written to")
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Size: Fixed(40)}, ""},
		{Spec{Size: Fixed(39)}, `"payload.size": 39 is less than the 40 bytes`},
		{Spec{Size: Uniform(10, 100)}, `"payload.size": 10 is less`},
		{Spec{Size: Fixed(40), Random: 1.5}, "not from 0 to 1"},
		{Spec{Bodies: [][]byte{{}}}, ""},
		{Spec{Bodies: [][]byte{}}, "there is none"},
	} {
		switch err := c.spec.Check(40); {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %v", c.spec, err)
		}
	}
}

var specs = map[string]*Spec{
	"fixed":     {Size: Fixed(100), Random: 1, Keys: InTurn(1000)},
	"uniform":   {Size: Uniform(50, 150), Random: 0.5, Keys: AtRandom(1000)},
	"mixed":     {Size: Mixed([]int{100, 10_000}, []float64{99, 1}), Random: 1},
	"given":     {Bodies: [][]byte{make([]byte, 100), make([]byte, 200)}, Shuffled: true},
	"ownBodies": {Bodies: [][]byte{make([]byte, 100)}},
}

// However different messages are, nothing is allocated for one that takes another's place.
func TestNothingIsAllocated(t *testing.T) {
	for name, s := range specs {
		for _, front := range []int{0, 40} {
			maker := s.Maker(front, 0)
			batch := make([]driver.Message, 64)
			n := uint64(0)
			fill := func() {
				for i := range batch {
					maker.Fill(&batch[i], n)
					n++
				}
			}
			for range 1000 { // until there are as many large buffers as ever at a time
				fill()
			}
			if allocs := testing.AllocsPerRun(1000, fill); allocs > 0.1 {
				t.Errorf("%s, front %d: %v allocations for %d messages", name, front, allocs, len(batch))
			}
		}
	}
}

func BenchmarkFill(b *testing.B) {
	for name, s := range specs {
		b.Run(name, func(b *testing.B) {
			maker := s.Maker(0, 0)
			batch := make([]driver.Message, 64)
			n := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				maker.Fill(&batch[n%64], n)
				n++
			}
		})
	}
}
