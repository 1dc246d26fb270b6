package recording_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

func create(t *testing.T) (*recording.File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recording.bin")
	f, err := recording.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	return f, path
}

func size(t *testing.T, path string) int {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size())
}

func read(t *testing.T, path string) *recording.Recording {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := recording.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFile_Appended_ReadBackEqual(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	plain, entries := history(random, 200, packs(random, 50))
	f, path := create(t)
	r := &recording.Recording{}
	for n, i := range plain {
		r.Add(i)
		if err := f.Append(r, i); err != nil {
			t.Fatal(err)
		}
		if n%40 == 0 {
			if got := read(t, path); !reflect.DeepEqual(got.Intervals(), r.Intervals()) {
				t.Fatalf("after %d intervals others are read", n+1)
			}
		}
	}
	got := read(t, path)
	if !reflect.DeepEqual(got.Intervals(), r.Intervals()) {
		t.Error("other intervals are read")
	}
	sameAsPlain(t, got, plain, entries)
}

// A file that is written anew has joined intervals, and after them those that are appended.
func TestFile_WrittenAnew_SameSums(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	plain, entries := history(random, 300, packs(random, 50))
	f, path := create(t)
	r := recording.Bounded(16)
	saved := 0
	for n, i := range plain {
		r.Add(i)
		if n == 150 || n == 151 || n == 250 {
			f.RewriteNext()
		}
		if n%7 != 0 && n != 150 && n%50 != 0 && n != len(plain)-1 {
			continue
		}
		if err := f.Append(r, plain[saved:n+1]...); err != nil {
			t.Fatal(err)
		}
		saved = n + 1
		if n%50 == 0 || n == 150 {
			sameSoFar := read(t, path)
			if !sameSums(recording.Sum(sameSoFar.Intervals(), nil), recording.Sum(plain[:n+1], nil)) {
				t.Fatalf("after %d intervals the sums differ", n+1)
			}
		}
	}
	sameAsPlain(t, read(t, path), plain, entries)
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

func TestFile_AppendFailed_NextWritesAnew(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	plain, entries := history(random, 3, packs(random, 50))
	f, path := create(t)
	r := &recording.Recording{}
	r.Add(plain[0])
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := f.Append(r, plain[0]); err == nil {
		t.Fatal("no error")
	}
	for _, i := range plain[1:] {
		r.Add(i)
		if err := f.Append(r, i); err != nil {
			t.Fatal(err)
		}
	}
	sameAsPlain(t, read(t, path), plain, entries)
}

func TestFile_RewriteFailed_OldOneStays(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	plain, entries := history(random, 2, packs(random, 50))
	f, path := create(t)
	r := &recording.Recording{}
	r.Add(plain[0])
	if err := f.Append(r, plain[0]); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unwritable := &recording.Recording{}
	unwritable.Add(&recording.Interval{CPU: math.NaN()})
	f.RewriteNext()
	if err := f.Append(unwritable, unwritable.Intervals()...); err == nil {
		t.Fatal("no error")
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file changed: %v", err)
	}
	if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the new file is there: %v", err)
	}
	r.Add(plain[1])
	if err := f.Append(r, plain[1]); err != nil {
		t.Fatal(err)
	}
	sameAsPlain(t, read(t, path), plain, entries)
}

// written returns a small file, the intervals in it, and the size after each.
func written(t *testing.T) (text []byte, plain []*recording.Interval, sizes []int) {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 8))
	plain, _ = history(random, 7, packs(random, 50))
	f, path := create(t)
	r := &recording.Recording{}
	for n, i := range plain {
		r.Add(i)
		if n == 2 {
			f.RewriteNext()
		}
		if err := f.Append(r, i); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, size(t, path))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text, plain, sizes
}

func TestRead_CutAtAnyByte_ShorterOrError(t *testing.T) {
	text, plain, sizes := written(t)
	for cut := range text {
		r, err := recording.Read(bytes.NewReader(text[:cut]))
		if cut < sizes[2] { // within what was written anew
			if err == nil && !reflect.DeepEqual(r.Intervals(), plain[:3]) {
				t.Fatalf("cut at %d: no error", cut)
			}
			continue
		}
		whole := 3
		for sizes[whole] <= cut {
			whole++
		}
		if err != nil || len(r.Intervals()) < whole || !reflect.DeepEqual(r.Intervals(), plain[:len(r.Intervals())]) {
			t.Fatalf("cut at %d: not the %d whole intervals: %v", cut, whole, err)
		}
	}
}

func TestRead_DamagedByte_ShorterOrError(t *testing.T) {
	text, plain, _ := written(t)
	random := rand.New(rand.NewPCG(9, 10))
	for at := range text {
		damaged := bytes.Clone(text)
		damaged[at] ^= byte(1 + random.IntN(255))
		r, err := recording.Read(bytes.NewReader(damaged))
		if err != nil {
			continue
		}
		if n := len(r.Intervals()); n > len(plain) || n > 0 && !reflect.DeepEqual(r.Intervals(), plain[:n]) {
			t.Fatalf("byte %d: %d intervals, not what was written", at, n)
		}
	}
}

// zipped returns a file of these texts.
func zipped(texts ...string) []byte {
	var file bytes.Buffer
	for _, text := range texts {
		z := gzip.NewWriter(&file)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
	}
	return file.Bytes()
}

const interval = `{"from":1,"to":2,"inFlight":0,"cpu":0,"busiest":0,"records":[{"broker":"b","driver":"d","topic":"t",`

func TestRead_NotARecording_Error(t *testing.T) {
	for name, file := range map[string][]byte{
		"empty":             nil,
		"no gzip":           []byte(`{"version":2}`),
		"no header":         zipped(""),
		"no JSON":           zipped("{"),
		"another version":   zipped(`{"version":1}`),
		"no version":        zipped(`{}`),
		"no interval":       zipped(`{"version":2}`, `[]`),
		"interval missing":  zipped(`{"version":2,"intervals":1}`),
		"ends before begin": zipped(`{"version":2}`, `{"from":2,"to":1}`),
		"goes back":         zipped(`{"version":2}`, `{"from":2,"to":3}`, `{"from":1,"to":3}`),
		"written twice":     zipped(`{"version":2}`, `{"from":2,"to":3}`, `{"from":2,"to":3}`),
		"unknown counter":   zipped(`{"version":2}`, interval+`"counts":{"x":1}}]}`),
		"unknown latency":   zipped(`{"version":2}`, interval+`"latencies":{"x":{}}}]}`),
		"damaged latency":   zipped(`{"version":2}`, interval+`"latencies":{"e2e_latency":{"count":1}}}]}`),
		"error of no kind":  zipped(`{"version":2}`, interval+`"errors":{"send":1}}]}`),
	} {
		if _, err := recording.Read(bytes.NewReader(file)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, file := range [][]byte{
		zipped(`{"version":2}`), zipped(`{"version":2}`, ""), zipped(`{"version":2}`, interval+`"counts":{"sent":1}}]}`),
	} {
		if _, err := recording.Read(bytes.NewReader(file)); err != nil {
			t.Error(err)
		}
	}
}

// FuzzRead looks for texts that crash Read or Sum, or that cannot be written again.
func FuzzRead(f *testing.F) {
	random := rand.New(rand.NewPCG(11, 12))
	plain, _ := history(random, 2, packs(random, 50))
	r := &recording.Recording{}
	for _, i := range plain {
		r.Add(i)
	}
	var file bytes.Buffer
	if err := r.Write(&file); err != nil {
		f.Fatal(err)
	}
	z, err := gzip.NewReader(&file)
	if err != nil {
		f.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(z); err != nil {
		f.Fatal(err)
	}
	f.Add(text.String())
	f.Add(`{"version":2}`)
	f.Add(`{"version":2,"stretches":[{"phase":"a","from":1,"to":2}]}` + interval + `"latencies":{"e2e_latency":{"count":0,"min":0,"max":0,"hdr":null}},"backlog":-1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = recording.Read(bytes.NewReader([]byte(text)))
		r, err := recording.Read(bytes.NewReader(zipped(text)))
		if err != nil {
			return
		}
		recording.Sum(r.Intervals(), nil)
		recording.Hiccups(r.Intervals(), nil)
		var file bytes.Buffer
		if err := r.Write(&file); err != nil {
			t.Fatal(err)
		}
		again, err := recording.Read(&file)
		if err != nil {
			t.Fatal(err)
		}
		if !sameSums(recording.Sum(again.Intervals(), nil), recording.Sum(r.Intervals(), nil)) {
			t.Error("other sums are read")
		}
	})
}

// atMost fails if a recording of topics, or its file, is larger than it may be.
func atMost(t *testing.T, r *recording.Recording, path string) {
	t.Helper()
	const most = 36 << 20 // one interval more than the limit
	if n := r.Bytes(); n > most {
		t.Fatalf("%d bytes of memory", n)
	}
	if n := size(t, path); n > 3*most { // written anew after as many bytes as the intervals may have
		t.Fatalf("a file of %d bytes", n)
	}
	if n := len(r.Intervals()); n > 1200 {
		t.Fatalf("%d intervals", n)
	}
}

func TestRecording_24Hours_Bounded(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(13, 14))
	from := packs(random, 10)
	f, path := create(t)
	r := &recording.Recording{}
	for n := range 24 * 60 * 60 {
		at := int64(n) * int64(time.Second)
		i := &recording.Interval{From: at, To: at + int64(time.Second), Records: []recording.Record{{Key: recording.Key{Topic: "t"}}}}
		if n%4 == 0 {
			i.Records[0].Latencies[0][0] = from[n/4%len(from)]
		}
		r.Add(i)
		if err := f.Append(r, i); err != nil {
			t.Fatal(err)
		}
		if n%1000 == 0 {
			atMost(t, r, path)
		}
	}
	t.Logf("%d intervals, %d bytes of memory, a file of %d", len(r.Intervals()), r.Bytes(), size(t, path))
	var want uint64
	for n := range 24 * 60 * 60 / 4 {
		want += from[n%len(from)].Count
	}
	for _, r := range []*recording.Recording{r, read(t, path)} {
		if got := latencies(r.Intervals()); got != want {
			t.Errorf("%d latencies, want %d", got, want)
		}
	}
}

// No intervals are larger than those whose latencies are spread as widely as joined ones become.
func TestRecording_WidestLatencies_Bounded(t *testing.T) {
	t.Parallel()
	from := widest(rand.New(rand.NewPCG(15, 16)), 9)
	for topics, intervals := range map[int]int{1: 60, 3: 40} {
		f, path := create(t)
		r := &recording.Recording{}
		for n := range intervals {
			i := second(n, topics, from)
			r.Add(i)
			if err := f.Append(r, i); err != nil {
				t.Fatal(err)
			}
			atMost(t, r, path)
		}
		t.Logf("%d topics: %d intervals, %d bytes of memory, a file of %d", topics, len(r.Intervals()), r.Bytes(), size(t, path))
	}
}

// latencies counts those of the first trend in open loops.
func latencies(all []*recording.Interval) (n uint64) {
	for _, s := range recording.Sum(all, nil) {
		n += s.Latencies[0][0].Count()
	}
	return n
}
