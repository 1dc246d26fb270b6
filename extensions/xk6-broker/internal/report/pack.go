package report

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Pack writes a result as one ZIP, with the files that [Folder.Write] writes: always the same bytes of the same result.
func Pack(w io.Writer, r *result.Result, ledger *account.Ledger) error {
	z := zip.NewWriter(w)
	for _, f := range filesOf(r, ledger) {
		entry := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		if f.name == LedgerFile || f.name == RecordingFile { // compressed themselves
			entry.Method = zip.Store
		}
		to, err := z.CreateHeader(entry)
		if err == nil {
			err = f.write(to)
		}
		if err != nil {
			return fmt.Errorf("report: %s: %w", f.name, err)
		}
	}
	return z.Close()
}

// ErrNotPacked is the error of what Pack did not write.
var ErrNotPacked = errors.New("not a packed result")

// What is unpacked is bounded, in bytes: of all files together, and of the summary, which is read as a whole.
const (
	mostUnpacked = 16 << 30
	mostSummary  = 64 << 20
)

// Unpack writes the files of a result that Pack packed into a folder, which is there.
func Unpack(from io.ReaderAt, size int64, folder string) error {
	z, err := zip.NewReader(from, size)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotPacked, err)
	}
	left, seen := uint64(mostUnpacked), map[string]bool{}
	for _, f := range z.File {
		switch {
		case f.Name != Sanitise(f.Name) || !isResult(f.Name) || seen[f.Name]:
			return fmt.Errorf("%w: %q is no file of a result", ErrNotPacked, f.Name)
		case f.UncompressedSize64 > left || f.Name == SummaryFile && f.UncompressedSize64 > mostSummary:
			return fmt.Errorf("%w: %s is too large", ErrNotPacked, f.Name)
		}
		seen[f.Name], left = true, left-f.UncompressedSize64
		if err := unpack(f, filepath.Join(folder, f.Name)); err != nil { //gosec:disable G305 -- the name has no path in it
			return err
		}
	}
	return nil
}

func unpack(f *zip.File, path string) error {
	from, err := f.Open()
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotPacked, f.Name, err)
	}
	defer func() { _ = from.Close() }()                                    // only read
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //gosec:disable G302,G304 -- anybody may read results; its name was looked at
	if err != nil {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(from, int64(f.UncompressedSize64)+1))                                                                       //gosec:disable G115 -- bounded
	if uint64(n) > f.UncompressedSize64 || errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) { //gosec:disable G115 -- a count
		err = fmt.Errorf("%w: %s: %w", ErrNotPacked, f.Name, cmp.Or(err, errors.New("it is longer than it says")))
	}
	return errors.Join(err, to.Sync(), to.Close())
}
