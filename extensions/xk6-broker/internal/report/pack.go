package report

import (
	"archive/zip"
	"fmt"
	"io"
	"os"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Pack writes the files of [Folder.Write] as one ZIP. Equal results have equal bytes.
func Pack(w io.Writer, r *result.Result, ledger *account.Ledger) error {
	z := zip.NewWriter(w)
	for _, f := range filesOf(r, ledger) {
		entry, err := z.Create(f.name)
		if err == nil {
			err = f.write(entry)
		}
		if err != nil {
			return fmt.Errorf("report: %s: %w", f.name, err)
		}
	}
	return z.Close()
}

// Unpack writes the files of a packed result into a folder, and replaces none there.
func Unpack(from io.ReaderAt, size int64, folder string) error {
	z, err := zip.NewReader(from, size)
	if err != nil {
		return fmt.Errorf("not a packed result: %w", err)
	}
	left := uint64(16 << 30) // bytes of all files
	for _, f := range z.File {
		if f.Name != Sanitise(f.Name) || !isResult(f.Name) || f.UncompressedSize64 > left {
			return fmt.Errorf("not a packed result: %q is no file of a result, or too large", f.Name)
		}
		left -= f.UncompressedSize64
	}
	if err := os.CopyFS(folder, z); err != nil {
		return fmt.Errorf("not a packed result: %w", err)
	}
	return nil
}
