package recording

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// version is that of the file's format, which docs/results.md describes.
const version = 1

// header is the first line of a file.
type header struct {
	Version   int       `json:"version"`
	Stretches []Stretch `json:"stretches,omitempty"` // before the file was written anew
}

// Write writes the recording of one process.
func (r *Recording) Write(w io.Writer) error {
	z := gzip.NewWriter(w)
	lines := json.NewEncoder(z)
	err := lines.Encode(header{version, r.stretches})
	for _, i := range r.intervals {
		err = errors.Join(err, lines.Encode(i))
	}
	if err = errors.Join(err, z.Close()); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}

// Read reads a recording. One that ends in the middle of a line, because its process was killed, is read up to there.
func Read(from io.Reader) (*Recording, error) {
	z, err := gzip.NewReader(bufio.NewReader(from))
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	lines := json.NewDecoder(z)
	var h header
	if err := lines.Decode(&h); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	if h.Version != version {
		return nil, fmt.Errorf("recording: version %d: this program reads version %d", h.Version, version)
	}
	r := &Recording{stretches: h.Stretches}
	for {
		var i Interval
		switch err := lines.Decode(&i); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return r, nil
		case err != nil:
			return nil, fmt.Errorf("recording: interval %d: %w", len(r.intervals), err)
		}
		if last := len(r.intervals) - 1; i.To < i.From || last >= 0 && i.From < r.intervals[last].From {
			return nil, fmt.Errorf("recording: interval %d goes back", len(r.intervals))
		}
		r.Add(&i)
	}
}

// File is a recording on disk that is written while the test runs. It is whole at all times.
type File struct {
	path string
	file *os.File
	size int64
}

// Create makes the file.
func Create(path string) (*File, error) {
	f := &File{path: path}
	return f, f.rewrite(&Recording{})
}

// Append writes the interval that was added to the recording last. A file that has become more than twice as long as the
// recording may be is written anew.
func (f *File) Append(r *Recording, last *Interval) error {
	if f.size > 2*int64(r.limit()) {
		return f.rewrite(r)
	}
	counted := &counter{to: f.file}
	z := gzip.NewWriter(counted)
	err := errors.Join(json.NewEncoder(z).Encode(last), z.Close())
	f.size += counted.n
	return wrapped(err)
}

func (f *File) rewrite(r *Recording) error {
	fresh, err := os.CreateTemp(filepath.Dir(f.path), "."+filepath.Base(f.path)+"-*")
	if err != nil {
		return wrapped(err)
	}
	counted := &counter{to: fresh}
	if err := errors.Join(r.Write(counted), fresh.Chmod(0o644), os.Rename(fresh.Name(), f.path)); err != nil {
		return wrapped(errors.Join(err, fresh.Close(), os.Remove(fresh.Name())))
	}
	if f.file != nil {
		_ = f.file.Close() // its name is another file's
	}
	f.file, f.size = fresh, counted.n
	return nil
}

// Close closes the file.
func (f *File) Close() error { return wrapped(f.file.Close()) }

func wrapped(err error) error {
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}

type counter struct {
	to io.Writer
	n  int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}

// MarshalJSON writes the counters that are not 0, by name.
func (c Counts) MarshalJSON() ([]byte, error) {
	named := map[string]int64{}
	for i, n := range c {
		if n != 0 {
			named[metric.Counter(i).String()] = n //gosec:disable G115 -- an index
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
		name := metric.Counter(i).String() //gosec:disable G115 -- an index
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
				named[metric.Trend(t).In(metric.Loop(loop))] = h //gosec:disable G115 -- indices
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
			name := metric.Trend(t).In(metric.Loop(loop)) //gosec:disable G115 -- indices
			l[loop][t] = named[name]
			delete(named, name)
		}
	}
	for name := range named {
		return fmt.Errorf("unknown latency %q", name)
	}
	return nil
}
