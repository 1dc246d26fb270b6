package sqs

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// maxGroup is how long the name of a message group may be.
const maxGroup = 128

// keyless is what the names of groups begin with that stand for no key. No key's does.
const keyless = "%-"

// groupOf is the message group of a key. What the service takes in no name, such as a space, and the % are written as %20 and %25.
func groupOf(key []byte) (string, error) {
	var name strings.Builder
	for _, c := range key {
		if c <= ' ' || c >= 0x7f || c == '%' {
			fmt.Fprintf(&name, "%%%02X", c)
		} else {
			name.WriteByte(c)
		}
	}
	if name.Len() > maxGroup {
		return "", &groupError{name.Len()}
	}
	return name.String(), nil
}

// groupError is that a key makes no name of a group.
type groupError struct{ length int }

func (e *groupError) Error() string {
	return fmt.Sprintf("the key is %d characters long as the name of a message group, which may have %d", e.length, maxGroup)
}

// ErrorCode is the service's name for it.
func (*groupError) ErrorCode() string { return "InvalidParameterValue" }

// keyOf is the key of a message group; nil where it stands for none. A name that others gave and that is no such writing is its own key.
func keyOf(group string) []byte {
	if group == "" || strings.HasPrefix(group, keyless) {
		return nil
	}
	if key, err := url.PathUnescape(group); err == nil {
		return []byte(key)
	}
	return []byte(group)
}

// spread gives the groups of messages without a key, in turn.
type spread struct {
	mu   sync.Mutex
	next int64
	of   int64
}

func (s *spread) group() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.next
	s.next = (n + 1) % s.of
	return keyless + strconv.FormatInt(n, 10)
}

// numbering numbers message groups in the order in which they are met.
type numbering struct {
	mu    sync.Mutex
	known map[string]int32
}

func (n *numbering) number(group string) int32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	number, ok := n.known[group]
	if !ok {
		number = int32(len(n.known)) //gosec:disable G115 -- a count, far below the limit
		n.known[group] = number
	}
	return number
}
