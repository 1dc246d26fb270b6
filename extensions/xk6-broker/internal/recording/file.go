package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// version is that of the file's format, which docs/results.md describes.
const version = 2

// header is the first line of a file.
type header struct {
	Version   int     `json:"version"`
	Intervals int     `json:"intervals,omitempty"` // that follow at least
	Entries   []Entry `json:"stretches,omitempty"` // before the file was written anew
}

// Write writes the recording of one process.
func (r *Recording) Write(w io.Writer) error {
	z := gzip.NewWriter(w)
	err := json.NewEncoder(z).Encode(header{version, len(r.intervals), r.entries})
	if err == nil {
		err = write(z, r.intervals)
	}
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}

// write writes intervals, one a line, and ends the gzip member.
func write(z *gzip.Writer, intervals []*Interval) error {
	lines := json.NewEncoder(z)
	for _, i := range intervals {
		if err := lines.Encode(i); err != nil {
			return err
		}
	}
	return z.Close()
}

// Read reads a recording. If its process was killed, it is read up to the end.
func Read(from io.Reader) (*Recording, error) {
	r, err := read(from)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return r, nil
}

func read(from io.Reader) (*Recording, error) {
	z, err := gzip.NewReader(bufio.NewReader(from))
	if err != nil {
		return nil, err
	}
	lines := json.NewDecoder(z)
	var h header
	if err := lines.Decode(&h); err != nil {
		return nil, err
	}
	if h.Version != version {
		return nil, fmt.Errorf("version %d: this program reads version %d", h.Version, version)
	}
	r := &Recording{entries: h.Entries}
	for n := 0; ; n++ {
		var i Interval
		err := lines.Decode(&i)
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if ended && n >= h.Intervals {
			return r, nil
		}
		if err != nil {
			return nil, err
		}
		if last := len(r.intervals) - 1; i.To < i.From || last >= 0 && i.From < r.intervals[last].To {
			return nil, fmt.Errorf("the interval from %d to %d does not come after the one before", i.From, i.To)
		}
		r.Add(&i)
	}
}

// File is a recording on disk that is written while the test runs. It is whole at all times.
type File struct {
	path   string
	size   int64
	most   int64 // beyond this size the file is written anew
	member bytes.Buffer
	zip    *gzip.Writer // kept, because each has tables of a MiB
}

// Create makes the file.
func Create(path string) (*File, error) {
	f := &File{path: path, zip: gzip.NewWriter(nil)}
	return f, f.rewrite(&Recording{})
}

// Append writes all intervals that were added to the recording since the last Append. It writes the
// file anew after an Append that failed, and after as many bytes as the recording may have.
func (f *File) Append(r *Recording, added ...*Interval) error {
	if f.size > f.most {
		return f.rewrite(r)
	}
	f.member.Reset()
	f.zip.Reset(&f.member)
	err := write(f.zip, added)
	if err == nil {
		err = f.write()
	}
	if err != nil {
		f.most = -1
		return err
	}
	f.size += int64(f.member.Len())
	return nil
}

// write writes the member at the end of the file.
func (f *File) write() error {
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(f.member.Bytes())
	return errors.Join(err, file.Close())
}

// rewrite replaces the file. If that fails, the old one stays.
func (f *File) rewrite(r *Recording) error {
	fresh, err := os.Create(f.path + ".new")
	if err != nil {
		return err
	}
	err = r.Write(fresh)
	size, _ := fresh.Seek(0, io.SeekCurrent) // 0 on error, and then the file is written anew earlier
	if err = errors.Join(err, fresh.Close()); err == nil {
		err = os.Rename(fresh.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh.Name()))
	}
	f.size, f.most = size, size+mostBytes
	return nil
}

// encode encodes the values that are not empty, by name.
func encode[T any](values map[string]*T, empty func(T) bool) ([]byte, error) {
	maps.DeleteFunc(values, func(_ string, v *T) bool { return empty(*v) })
	return json.Marshal(values)
}

// decode sets the values that encode wrote.
func decode[T any](text []byte, values map[string]*T) error {
	var named map[string]T
	if err := json.Unmarshal(text, &named); err != nil {
		return err
	}
	for name, v := range named {
		if values[name] == nil {
			return fmt.Errorf("%q is not known", name)
		}
		*values[name] = v
	}
	return nil
}

func (c *Counts) named() map[string]*int64 {
	all := map[string]*int64{}
	for i := range Counter(NumCounters) {
		all[i.String()] = &c[i]
	}
	return all
}

// MarshalJSON writes the counters that are not 0, by name.
func (c Counts) MarshalJSON() ([]byte, error) {
	return encode(c.named(), func(n int64) bool { return n == 0 })
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Counts) UnmarshalJSON(text []byte) error { return decode(text, c.named()) }

func (l *Latencies) named() map[string]*hist.Packed {
	all := map[string]*hist.Packed{}
	for loop := range Loop(NumLoops) {
		for t := range Trend(NumTrends) {
			all[t.In(loop)] = &l[loop][t]
		}
	}
	return all
}

// MarshalJSON writes the distributions that are not empty, by the names of [Trend.In].
func (l Latencies) MarshalJSON() ([]byte, error) { return encode(l.named(), hist.Packed.Empty) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *Latencies) UnmarshalJSON(text []byte) error { return decode(text, l.named()) }

// MarshalText writes the key of an error as "op kind".
func (k ErrorKey) MarshalText() ([]byte, error) { return []byte(k.Op + " " + k.Kind), nil }

// UnmarshalText reads what MarshalText wrote.
func (k *ErrorKey) UnmarshalText(text []byte) error {
	op, kind, ok := strings.Cut(string(text), " ")
	if !ok {
		return fmt.Errorf("%q is no error", text)
	}
	k.Op, k.Kind = op, kind
	return nil
}
