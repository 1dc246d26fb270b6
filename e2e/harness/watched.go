package harness

import (
	"bytes"
	"strings"
	"sync"
)

// Watched is the output of a process. It closes Seen when it contains a text.
type Watched struct {
	want string
	Seen chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
	done bool
}

// Watch returns a Watched that waits for a text.
func Watch(want string) *Watched { return &Watched{want: want, Seen: make(chan struct{})} }

func (w *Watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(b)
	if !w.done && w.want != "" && strings.Contains(w.text.String(), w.want) {
		w.done = true
		close(w.Seen)
	}
	return n, err
}

func (w *Watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
