package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// version is that of the file's format, which docs/results.md describes.
const version = 2

// header is the first line of a file.
type header struct {
	Version   int       `json:"version"`
	Stretches []Stretch `json:"stretches,omitempty"` // before the file was written anew
}

// Write writes the recording of one process.
func (r *Recording) Write(w io.Writer) error {
	z := gzip.NewWriter(w)
	err := json.NewEncoder(z).Encode(header{version, r.stretches})
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

// Read reads a recording. One whose end is cut off, because its process was killed, is read up to
// there.
func Read(from io.Reader) (*Recording, error) {
	r, err := read(bufio.NewReader(from))
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return r, nil
}

func read(from *bufio.Reader) (*Recording, error) {
	var z gzip.Reader
	text, err := member(&z, from)
	if err != nil {
		return nil, err
	}
	lines := json.NewDecoder(bytes.NewReader(text))
	var h header
	if err := lines.Decode(&h); err != nil {
		return nil, err
	}
	if h.Version != version {
		return nil, fmt.Errorf("version %d: this program reads version %d", h.Version, version)
	}
	r := &Recording{stretches: h.Stretches}
	for {
		if err := r.read(lines); err != nil {
			return nil, err
		}
		text, err := member(&z, from)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return r, nil
		}
		if err != nil {
			return nil, err
		}
		lines = json.NewDecoder(bytes.NewReader(text))
	}
}

// member returns the text of the next gzip member after its checksum was verified.
func member(z *gzip.Reader, from *bufio.Reader) ([]byte, error) {
	if err := z.Reset(from); err != nil {
		return nil, err
	}
	z.Multistream(false)
	return io.ReadAll(z)
}

// read adds the intervals of a member.
func (r *Recording) read(lines *json.Decoder) error {
	for {
		var i Interval
		if err := lines.Decode(&i); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if last := len(r.intervals) - 1; i.To < i.From || last >= 0 && i.From < r.intervals[last].To {
			return fmt.Errorf("the interval from %d to %d does not come after the one before", i.From, i.To)
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
	f.size, f.most = size, size+int64(r.limit())
	return nil
}

// MarshalJSON writes the counters that are not 0, by name.
func (c Counts) MarshalJSON() ([]byte, error) {
	named := map[string]int64{}
	for i, n := range c {
		if n != 0 {
			named[Counter(i).String()] = n //gosec:disable G115 -- an index
		}
	}
	return json.Marshal(named)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Counts) UnmarshalJSON(text []byte) error {
	var named map[string]int64
	if err := json.Unmarshal(text, &named); err != nil {
		return err
	}
	for i := range c {
		name := Counter(i).String() //gosec:disable G115 -- an index
		c[i] = named[name]
		delete(named, name)
	}
	for name := range named {
		return fmt.Errorf("unknown counter %q", name)
	}
	return nil
}

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

// MarshalJSON writes the distributions that are not empty, by the names of [metric.Trend.In].
func (l Latencies) MarshalJSON() ([]byte, error) {
	named := map[string]hist.Packed{}
	for loop := range l {
		for t, h := range l[loop] {
			if !h.Empty() {
				named[Trend(t).In(Loop(loop))] = h //gosec:disable G115 -- indices
			}
		}
	}
	return json.Marshal(named)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *Latencies) UnmarshalJSON(text []byte) error {
	var named map[string]hist.Packed
	if err := json.Unmarshal(text, &named); err != nil {
		return err
	}
	for loop := range l {
		for t := range l[loop] {
			name := Trend(t).In(Loop(loop)) //gosec:disable G115 -- indices
			l[loop][t] = named[name]
			delete(named, name)
		}
	}
	for name := range named {
		return fmt.Errorf("unknown latency %q", name)
	}
	return nil
}
