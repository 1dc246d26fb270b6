package account

import (
	"archive/zip"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The entries of a ledger's file, which is a ZIP: sets of numbers one behind another, not compressed so that each can be read by itself, and
// what else is known, a JSON document a line. See docs/results.md.
const (
	setsEntry  = "sets.roaring"
	linesEntry = "ledger.jsonl"
	soFarEntry = "summary.json" // of one that is unfinished
)

// line is one of the ledger's lines: one of these. A group is of the topic before it, and so is a producer; a source is of the group before it.
type line struct {
	Ledger   *Ledger       `json:"ledger,omitempty"`
	Topic    *TopicLedger  `json:"topic,omitempty"`
	Producer *producerLine `json:"producer,omitempty"`
	Group    *groupLine    `json:"group,omitempty"`
	Source   *sourceLine   `json:"source,omitempty"`
}

type producerLine struct {
	ID       uint64 `json:"id"`
	Next     uint64 `json:"next"`
	Expected *place `json:"expected,omitempty"`
	Index    marks  `json:"index,omitempty"`
	Width    int64  `json:"width,omitempty"`
}

type groupLine struct {
	Name  string `json:"name"`
	Tally Tally  `json:"tally"`
	GroupLedger
}

type sourceLine struct {
	ID       uint64      `json:"id"`
	Foreign  bool        `json:"foreign,omitempty"`
	Spans    [][2]uint64 `json:"spans,omitempty"` // from, until
	Received *place      `json:"received,omitempty"`
	Settled  *place      `json:"settled,omitempty"`
	Again    *place      `json:"again,omitempty"`
	Drained  *place      `json:"drained,omitempty"`
	Doubted  *place      `json:"doubted,omitempty"`
	Cleared  *place      `json:"cleared,omitempty"`
}

// marks are lines of two numbers: there may be one for each second of each producer, or some thousands.
type marks [][2]int64 // at, next

// place is where a set is in the entry of the sets. The empty one is nowhere, and equal ones are in one place.
type place struct {
	At    int64  `json:"at"`
	Bytes int64  `json:"bytes"`
	Count uint64 `json:"count"`
}

// Write encodes the ledger; a message takes a fraction of a bit where nearly all went well, and a few bits otherwise.
func (l *Ledger) Write(w io.Writer) error {
	z := zip.NewWriter(w)
	sets, err := z.CreateHeader(&zip.FileHeader{Name: setsEntry, Method: zip.Store})
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	places, err := writeSets(sets, l)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	lines, err := z.Create(linesEntry)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	err = l.writeLines(json.NewEncoder(lines), places)
	if err == nil && l.Summary != nil {
		err = writeEntry(z, soFarEntry, l.Summary)
	}
	if err := errors.Join(err, z.Close()); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

// writeEntry does not compress: it is done each second.
func writeEntry(z *zip.Writer, name string, text []byte) error {
	w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// numbers lists the sets of a ledger, always in the same order.
func (l *TopicLedger) numbers() (all []Numbers) {
	for _, p := range l.Producers {
		all = append(all, p.Expected)
	}
	for _, g := range l.Groups {
		for _, s := range g.Sources {
			all = append(all, s.Received, s.Settled, s.Again, s.Drained, s.Doubted, s.Cleared)
		}
	}
	return all
}

// writeSets writes the sets, and says where each is.
func writeSets(w io.Writer, l *Ledger) (places []*place, err error) {
	var at int64
	var last Set
	var lastPlace *place
	for i := range l.Topics {
		for _, n := range l.Topics[i].numbers() {
			if Count(n) == 0 {
				places = append(places, nil)
				continue
			}
			set, err := n.Load()
			if err != nil {
				return nil, err
			}
			if lastPlace == nil || !set.Equal(last) { // mostly, what was received was settled
				size, err := set.WriteTo(w)
				if err != nil {
					return nil, err
				}
				last, lastPlace = set, &place{at, size, set.Len()}
				at += size
			}
			places = append(places, lastPlace)
		}
	}
	return places, nil
}

func (l *Ledger) writeLines(lines *json.Encoder, places []*place) error {
	lines.SetEscapeHTML(false)
	next := func() (p *place) {
		p, places = places[0], places[1:]
		return p
	}
	if err := lines.Encode(line{Ledger: l}); err != nil {
		return err
	}
	for i := range l.Topics {
		t := &l.Topics[i]
		if err := lines.Encode(line{Topic: t}); err != nil {
			return err
		}
		for _, p := range t.Producers {
			of := producerLine{ID: p.ID, Next: p.Next, Expected: next(), Width: t.Courses[p.ID].Width}
			for _, m := range t.Courses[p.ID].Marks {
				of.Index = append(of.Index, [2]int64{m.At, int64(m.Next)}) //gosec:disable G115 -- a count
			}
			if err := lines.Encode(line{Producer: &of}); err != nil {
				return err
			}
		}
		for k := range t.Groups {
			g := &t.Groups[k]
			if err := lines.Encode(line{Group: &groupLine{g.Name, g.Tally, *g}}); err != nil {
				return err
			}
			for _, s := range g.Sources {
				of := sourceLine{ID: s.ID, Foreign: s.Foreign, Received: next(), Settled: next(), Again: next(), Drained: next(), Doubted: next(), Cleared: next()}
				for _, b := range s.Spans {
					of.Spans = append(of.Spans, [2]uint64{b.From, b.Until})
				}
				if err := lines.Encode(line{Source: &of}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// ReadLedger reads what Write wrote, all of it once, for its checksums. The sets stay where they are until they are needed: from must stay open, and is closed with
// the ledger.
func ReadLedger(from io.ReaderAt, size int64) (*Ledger, error) {
	start := make([]byte, 2)
	if n, _ := from.ReadAt(start, 0); n == 2 && start[0] == 0x1f && start[1] == 0x8b { // of gzip
		return nil, fmt.Errorf("a ledger of a version before %d, which this program does not read: merge it with the version of xk6-broker that wrote it", LedgerVersion)
	}
	z, err := zip.NewReader(from, size)
	if err != nil {
		return nil, fmt.Errorf("a damaged ledger, or not all of it: %w", err)
	}
	sets, lines := entry(z, setsEntry), entry(z, linesEntry)
	if sets == nil || lines == nil || sets.Method != zip.Store {
		return nil, fmt.Errorf("no ledger: it has no %s, or no %s that is not compressed", linesEntry, setsEntry)
	}
	r := &ledgerReader{}
	begin, err := sets.DataOffset()
	if err == nil {
		r.sets, err = io.NewSectionReader(from, begin, int64(sets.UncompressedSize64)), verify(sets) //gosec:disable G115 -- not more than the file has
	}
	if err == nil {
		err = r.read(lines)
	}
	if err != nil {
		return nil, fmt.Errorf("a damaged ledger: %w", err)
	}
	if soFar := entry(z, soFarEntry); soFar != nil {
		if r.ledger.Summary, err = readEntry(soFar); err != nil {
			return nil, fmt.Errorf("a damaged ledger: %w", err)
		}
	}
	if file, ok := from.(io.Closer); ok {
		r.ledger.file = file
	}
	return r.ledger, nil
}

func entry(z *zip.Reader, name string) *zip.File {
	for _, f := range z.File {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// verify reads an entry to its end, where its checksum is compared.
func verify(f *zip.File) error {
	from, err := f.Open()
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, from) //gosec:disable G110 -- what comes is thrown away
	return errors.Join(err, from.Close())
}

func readEntry(f *zip.File) ([]byte, error) {
	from, err := f.Open()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(from)
	return text, errors.Join(err, from.Close())
}

// ledgerReader makes a ledger of its lines.
type ledgerReader struct {
	sets   *io.SectionReader
	ledger *Ledger
}

func (r *ledgerReader) read(f *zip.File) error {
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // only read
	buffered := bufio.NewReader(from)
	for lines := json.NewDecoder(buffered); ; {
		var l line
		if err := lines.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if err := r.add(&l); err != nil {
			return err
		}
	}
	if r.ledger == nil {
		return errNoLedger
	}
	return nil
}

var errNoLedger = errors.New("it does not begin with its version")

func (r *ledgerReader) add(l *line) error {
	if r.ledger == nil {
		if l.Ledger == nil {
			return errNoLedger
		}
		if l.Ledger.Version != LedgerVersion {
			return fmt.Errorf("it is of version %d, and this program reads version %d", l.Ledger.Version, LedgerVersion)
		}
		r.ledger = l.Ledger
		return nil
	}
	if l.Topic != nil {
		l.Topic.Courses = map[uint64]Course{}
		r.ledger.Topics = append(r.ledger.Topics, *l.Topic)
		return nil
	}
	if len(r.ledger.Topics) == 0 {
		return errors.New("a line is of no topic")
	}
	t := &r.ledger.Topics[len(r.ledger.Topics)-1]
	switch {
	case l.Producer != nil:
		p := l.Producer
		t.Producers = append(t.Producers, ProducerSnapshot{ID: p.ID, Next: p.Next, Expected: r.numbers(p.Expected)})
		c := Course{Width: p.Width}
		for _, m := range p.Index {
			c.Marks = append(c.Marks, Mark{m[0], uint64(m[1])}) //gosec:disable G115 -- a count
		}
		t.Courses[p.ID] = c
	case l.Group != nil:
		g := l.Group.GroupLedger
		g.GroupSnapshot = GroupSnapshot{Name: l.Group.Name, Tally: l.Group.Tally}
		t.Groups = append(t.Groups, g)
	case l.Source != nil && len(t.Groups) > 0:
		g, s := &t.Groups[len(t.Groups)-1], l.Source
		if n := len(g.Sources); n > 0 && g.Sources[n-1].ID >= s.ID {
			return fmt.Errorf("the sources of group %q are not in their order", g.Name)
		}
		of := SourceSnapshot{
			ID: s.ID, Foreign: s.Foreign, Received: r.numbers(s.Received), Settled: r.numbers(s.Settled), Again: r.numbers(s.Again),
			Drained: r.numbers(s.Drained), Doubted: r.numbers(s.Doubted), Cleared: r.numbers(s.Cleared),
		}
		for _, b := range s.Spans {
			of.Spans = append(of.Spans, Bounds{From: b[0], Until: b[1]})
		}
		g.Sources = append(g.Sources, of)
	default:
		return errors.New("a line is of no group, or of nothing that is known")
	}
	return nil
}

func (r *ledgerReader) numbers(p *place) Numbers {
	if p == nil {
		return Set{}
	}
	return stored{*p, r.sets}
}

// stored is a set in the file.
type stored struct {
	place
	in *io.SectionReader
}

// Len is how many numbers the file says there are.
func (s stored) Len() uint64 { return s.Count }

// Load reads the set.
func (s stored) Load() (Set, error) {
	if s.At < 0 || s.Bytes < 0 || s.At > s.in.Size()-s.Bytes {
		return Set{}, errors.New("a damaged ledger: a set is beyond its end")
	}
	text := make([]byte, s.Bytes)
	if _, err := s.in.ReadAt(text, s.At); err != nil {
		return Set{}, fmt.Errorf("ledger: %w", err)
	}
	set, err := ReadSet(text)
	if err != nil {
		return set, fmt.Errorf("a damaged ledger: %w", err)
	}
	if set.Len() != s.Count {
		return set, fmt.Errorf("a damaged ledger: a set of %d numbers has %d", s.Count, set.Len())
	}
	return set, nil
}
