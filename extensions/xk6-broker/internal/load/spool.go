package load

import (
	"fmt"
	"io"
	"os"
)

// spoolLimit is how much a run spools: a day of one busy topic. The disk has other users.
const spoolLimit = 4 << 30

// spool is a temporary file for what a run writes and only needs at its end. It loses its name as soon as it is open, so that nothing is
// left behind however the process ends; where the system does not let go of an open file's name, close removes it.
type spool struct {
	file  *os.File // nil until something is spooled
	named bool     // it has kept its name
	size  int64
}

// block is a part of a spool.
type block struct {
	of         *os.File
	from, size int64
}

// append adds bytes. After an error, what was spooled before is still there.
func (s *spool) append(b []byte) (block, error) {
	if s.size+int64(len(b)) > spoolLimit {
		return block{}, fmt.Errorf("the temporary file has reached %d GiB", spoolLimit>>30)
	}
	if s.file == nil {
		file, err := os.CreateTemp("", "xk6-broker-*.hlog")
		if err != nil {
			return block{}, err
		}
		s.file, s.named = file, os.Remove(file.Name()) != nil
	}
	if _, err := s.file.WriteAt(b, s.size); err != nil {
		return block{}, err
	}
	added := block{s.file, s.size, int64(len(b))}
	s.size += int64(len(b))
	return added, nil
}

func (b block) copyTo(w io.Writer) error {
	_, err := io.Copy(w, io.NewSectionReader(b.of, b.from, b.size))
	return err
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
	if s.named {
		_ = os.Remove(s.file.Name())
	}
}
