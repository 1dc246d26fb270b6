package hist_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// What was packed says, when it is added to something, what it said before; and it is small.
func TestPackedHistogramsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all, unpacked := &hist.Histogram{}, &hist.Histogram{}
	for n := range 50 {
		h := &hist.Histogram{}
		for range 100 * n {
			h.Record(int64(r.ExpFloat64() * 3e5))
		}
		switch n {
		case 10:
			h.RecordN(0, 1<<40)
		case 20:
			h.Record(-5)
		case 30:
			h.Record(hist.Highest + 7)
		}
		all.Merge(h)
		p := h.Pack()
		if p.Count != h.Count() {
			t.Errorf("count %d, want %d", p.Count, h.Count())
		}
		p.AddTo(unpacked)
	}
	if !equal(all, unpacked) {
		t.Errorf("%d values from %d to %d, want %d from %d to %d", unpacked.Count(), unpacked.Min(), unpacked.Max(), all.Count(), all.Min(), all.Max())
	}
	empty := &hist.Histogram{}
	(&hist.Histogram{}).Pack().AddTo(empty)
	if !equal(empty, &hist.Histogram{}) {
		t.Error("nothing became something")
	}
}

func TestPacked_With_BothHold(t *testing.T) {
	cases := samples()
	cases["empty"] = nil
	cases["negative"] = []int64{-1, -5}
	cases["overflow"] = []int64{1, hist.Highest + 1, -3}
	for a, some := range cases {
		for b, others := range cases {
			got, want := &hist.Histogram{}, record(append(append([]int64(nil), some...), others...))
			record(some).Pack().With(record(others).Pack()).AddTo(got)
			if !equal(got, want) {
				t.Errorf("%s with %s: %+v, want %+v", a, b, got, want)
			}
		}
	}
}

func TestPacked_JSON_RoundTrip(t *testing.T) {
	cases := samples()
	cases["empty"] = nil
	cases["negative"] = []int64{-1, -5}
	cases["overflow"] = []int64{1, hist.Highest + 1, -3}
	packed := map[string]hist.Packed{"zero": {}}
	for name, values := range cases {
		packed[name] = record(values).Pack()
	}
	text, err := json.Marshal(packed)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]hist.Packed
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, packed) {
		t.Errorf("got %v back, want %v", got, packed)
	}
}

func TestPacked_DamagedJSON_Refused(t *testing.T) {
	document := func(count uint64, least, greatest int64, hdr string) string {
		return fmt.Sprintf(`{"count":%d,"min":%d,"max":%d,"hdr":%q}`, count, least, greatest, hdr)
	}
	encode := func(h *hdrhistogram.Histogram, values ...int64) string {
		for _, v := range values {
			if err := h.RecordValue(v); err != nil {
				t.Fatal(err)
			}
		}
		text, err := h.EncodeV2()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	ours := func(values ...int64) string { return encode(hdrhistogram.New(1, hist.Highest, 3), values...) }
	good := ours(5, 6, 6)
	wide := hdrhistogram.New(1, hist.Highest, 3)
	if err := wide.RecordValues(1, 1<<51); err != nil {
		t.Fatal(err)
	}
	var p hist.Packed
	if err := json.Unmarshal([]byte(document(3, 5, 6, good)), &p); err != nil || p.Count != 3 {
		t.Fatalf("count %d, %v", p.Count, err)
	}
	before := p
	for name, text := range map[string]string{
		"no object":         `[]`,
		"no base64":         document(1, 0, 0, "*"),
		"no distribution":   `{"count":1,"min":0,"max":0}`,
		"an older version":  `{"count":3,"min":5,"max":6,"buckets":"AAUBAg=="}`,
		"cut":               document(3, 5, 6, good[:len(good)/2]),
		"another precision": document(1, 5, 5, encode(hdrhistogram.New(1, hist.Highest, 2), 5)),
		"another range":     document(1, 5, 5, encode(hdrhistogram.New(1, 1000, 3), 5)),
		"another count":     document(4, 5, 6, good),
		"a lower min":       document(3, 4, 6, good),
		"a negative min":    document(3, -1, 6, good),
		"a higher max":      document(3, 5, 7, good),
		"a max beyond":      document(3, 5, math.MaxInt64, good),
		"a value beyond":    document(1, hist.Highest, hist.Highest, ours(1<<42-1)),
		"too high a count":  document(1<<51, 1, 1, encode(wide)),
	} {
		if err := json.Unmarshal([]byte(text), &p); err == nil {
			t.Errorf("%s: not refused", name)
		}
		if !reflect.DeepEqual(p, before) {
			t.Errorf("%s: the histogram was changed", name)
			p = before
		}
		h := record([]int64{1})
		if err := h.UnmarshalJSON([]byte(text)); err == nil || h.Count() != 1 {
			t.Errorf("%s: %d values, error %v", name, h.Count(), err)
		}
	}
}

// FuzzPackedJSON looks for input that crashes the decoder, or that cannot be written again.
func FuzzPackedJSON(f *testing.F) {
	for _, values := range [][]int64{nil, {1}, {-1, 5, 5000, 1 << 41, hist.Highest + 1}} {
		text, err := json.Marshal(record(values).Pack())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p, again hist.Packed
		if json.Unmarshal(text, &p) != nil {
			return
		}
		sum, other := &hist.Histogram{}, &hist.Histogram{}
		p.AddTo(sum)
		encoded, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(encoded, &again); err != nil {
			t.Fatal(err)
		}
		if again.AddTo(other); !equal(sum, other) || sum.Count() != p.Count {
			t.Errorf("got back %+v", again)
		}
	})
}
