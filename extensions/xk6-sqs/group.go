package sqs

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// maxGroup is the longest name of a message group.
const maxGroup = 128

// keyless begins the names of the groups of messages without a key. No key's group begins with it.
const keyless = "%-"

// groupOf returns the message group of a key. Characters that names cannot have, and %, are written
// as in URLs, such as %20 and %25.
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

// groupError reports a key that is too long for the name of a group.
type groupError struct{ length int }

func (e *groupError) Error() string {
	return fmt.Sprintf(
		"the key is %d characters long as the name of a message group, which may have %d", e.length, maxGroup,
	)
}

// ErrorCode returns the service's name for the error.
func (*groupError) ErrorCode() string { return "InvalidParameterValue" }

// keyOf returns the key of a message group; nil if there is none. A name that is not written as in
// URLs, which another program gave, is the key.
func keyOf(group string) []byte {
	if group == "" || strings.HasPrefix(group, keyless) {
		return nil
	}
	if key, err := url.PathUnescape(group); err == nil {
		return []byte(key)
	}
	return []byte(group)
}

// spread returns the groups of messages without a key, in turn.
type spread struct {
	mu     sync.Mutex
	next   int64
	groups int64
}

func (s *spread) group() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.next
	s.next = (n + 1) % s.groups
	return keyless + strconv.FormatInt(n, 10)
}

// numbering numbers message groups in the order of their first messages.
type numbering struct {
	mu      sync.Mutex
	numbers map[string]int32
}

func (n *numbering) number(group string) int32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	number, ok := n.numbers[group]
	if !ok {
		number = int32(len(n.numbers)) //gosec:disable G115 -- a count, far below the limit
		n.numbers[group] = number
	}
	return number
}
