package hist_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

func TestJSONLosesNothing(t *testing.T) {
	cases := samples()
	cases["empty"] = nil
	cases["only negative"] = []int64{-1, -5}
	cases["overflow"] = []int64{1, hist.Highest + 1, hist.Highest + 2, -3}
	for name, values := range cases {
		t.Run(name, func(t *testing.T) {
			want := record(values)
			text, err := json.Marshal(map[string]any{"h": want})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]*hist.Histogram{}
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if !equal(got["h"], want) {
				t.Errorf("got %+v back", got["h"])
			}
		})
	}
}

func TestJSONRefusesWhatContradictsItself(t *testing.T) {
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
	good := encode(hdrhistogram.New(1, hist.Highest, 3), 5, 5000)
	document := func(count, least, greatest, overflow int64, hdr string) string {
		return fmt.Sprintf(`{"count":%d,"min":%d,"max":%d,"negative":0,"overflow":%d,"hdr":%q}`, count, least, greatest, overflow, hdr)
	}
	if err := new(hist.Histogram).UnmarshalJSON([]byte(document(2, 5, 5001, 0, good))); err != nil {
		t.Fatalf("a good document is refused: %v", err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":          {`{`, "JSON"},
		"no distribution":  {`{}`, "too short"},
		"no base64":        {document(2, 5, 5000, 0, "*"), "base64"},
		"cut short":        {document(2, 5, 5000, 0, good[:len(good)/2]), "histogram"},
		"another layout":   {document(1, 5, 5, 0, encode(hdrhistogram.New(1, hist.Highest, 2), 5)), "layout"},
		"another range":    {document(1, 5, 5, 0, encode(hdrhistogram.New(1, 1000, 3), 5)), "layout"},
		"a wrong count":    {document(3, 5, 5000, 0, good), "count 3, but 2 values"},
		"a lower min":      {document(2, 4, 5000, 0, good), "min 4"},
		"a higher min":     {document(2, 6, 5000, 0, good), "min 6"},
		"a negative min":   {document(2, -5, 5000, 0, good), "min -5"},
		"a lower max":      {document(2, 5, 4999, 0, good), "max 4999"},
		"a higher max":     {document(2, 5, 5004, 0, good), "max 5004"},
		"an empty one":     {document(0, 1, 1, 0, encode(hdrhistogram.New(1, hist.Highest, 3))), "min 1"},
		"min above max":    {document(1, 5001, 5000, 0, encode(hdrhistogram.New(1, hist.Highest, 3), 5000)), "min 5001"},
		"values too great": {document(1, hist.Highest, hist.Highest, 0, encode(hdrhistogram.New(1, hist.Highest, 3), 1<<42-1)), "max"},
		"overflow":         {document(2, 5, 5000, 1, good), "overflow 1"},
	} {
		var h hist.Histogram
		h.Record(1)
		err := h.UnmarshalJSON([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, c.want)
		}
		if h.Count() != 1 {
			t.Errorf("%s: the histogram was changed", name)
		}
	}
}

// FuzzUnmarshalJSON looks for input that crashes the decoder, or that it takes and then cannot give back.
func FuzzUnmarshalJSON(f *testing.F) {
	for _, values := range [][]int64{nil, {1}, {-1, 5, 5000, 1 << 41, hist.Highest + 1}} {
		text, err := record(values).MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var h, again hist.Histogram
		if h.UnmarshalJSON(text) != nil {
			return
		}
		for _, q := range quantiles {
			if v := h.Quantile(q); v < h.Min() || v > h.Max() {
				t.Errorf("quantile %g is %d, outside %d to %d", q, v, h.Min(), h.Max())
			}
		}
		encoded, err := h.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := again.UnmarshalJSON(encoded); err != nil || !equal(&again, &h) {
			t.Errorf("got back %+v, %v", &again, err)
		}
	})
}
