package account

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Write encodes the ledger as JSON, compressed by gzip. A message takes a fraction of a bit where
// nearly all went well, and a few bits otherwise.
func (l *Ledger) Write(w io.Writer) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err == nil {
		err = errors.Join(json.NewEncoder(z).Encode(l), z.Close())
	}
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

// ReadLedger reads what Write wrote.
func ReadLedger(from io.Reader) (*Ledger, error) {
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, fmt.Errorf("no ledger of version %d, or a damaged one: %w", LedgerVersion, err)
	}
	l := &Ledger{}
	if err = json.NewDecoder(z).Decode(l); err == nil {
		_, err = io.Copy(io.Discard, z) //gosec:disable G110 -- to its end, where the checksum is
	}
	if err != nil {
		return nil, fmt.Errorf("a damaged ledger, or not all of it: %w", err)
	}
	if l.Version != LedgerVersion {
		return nil, fmt.Errorf("a ledger of version %d: this program reads version %d", l.Version, LedgerVersion)
	}
	for _, t := range l.Topics {
		for _, g := range t.Groups {
			if !slices.IsSortedFunc(g.Sources, func(a, b SourceSnapshot) int { return cmp.Compare(a.ID, b.ID) }) {
				return nil, fmt.Errorf("a damaged ledger: the sources of group %q are not in their order", g.Name)
			}
		}
	}
	return l, nil
}
