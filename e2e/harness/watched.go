package harness

import (
	"bytes"
	"strings"
	"sync"
)

// Watched is what a process writes. It closes Seen when something stands in it.
type Watched struct {
	want string
	Seen chan struct{} // closed once it is there

	mu   sync.Mutex
	text bytes.Buffer
	done bool
}

// Watch returns a Watched that waits for some text.
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
