package e2e

import (
	"bytes"
	"strings"
	"sync"
)

// watched is what a process writes, and tells when something stands in it.
type watched struct {
	want string
	seen chan struct{} // closed once it is there

	mu   sync.Mutex
	text bytes.Buffer
	done bool
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(b)
	if !w.done && w.want != "" && strings.Contains(w.text.String(), w.want) {
		w.done = true
		close(w.seen)
	}
	return n, err
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
