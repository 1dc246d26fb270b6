package drivertest

import (
	"strconv"
	"sync"
	"testing"
)

// numbers stand for bodies, where a broker stores nothing else.
type numbers struct {
	mu     sync.Mutex
	of     map[string]int // by body
	bodies []string       // by number
}

// number is the text of the number that stands for a body.
func (n *numbers) number(body []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	number, known := n.of[string(body)]
	if !known {
		number = len(n.bodies)
		n.of[string(body)] = number
		n.bodies = append(n.bodies, string(body))
	}
	return strconv.AppendInt(nil, int64(number), 10)
}

// body is what a number stands for.
func (n *numbers) body(t testing.TB, text []byte) []byte {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	number, err := strconv.Atoi(string(text))
	if err != nil || number < 0 || number >= len(n.bodies) {
		t.Errorf("a body that is stored is %.40q, which is no number that was sent", text)
		return nil
	}
	return []byte(n.bodies[number])
}

// bytes skips the test where bodies cannot be any bytes.
func (k *kit) bytes(t *testing.T) {
	t.Helper()
	claimed(t, k.numbers == nil, "bodies of any bytes")
}
