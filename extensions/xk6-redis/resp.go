package redis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// appendArray begins a command of n arguments, in the protocol that servers call RESP2.
func appendArray(b []byte, n int) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, '\r', '\n')
}

// appendBulk appends an argument.
func appendBulk[T string | []byte](b []byte, s T) []byte {
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, '\r', '\n')
	b = append(b, s...)
	return append(b, '\r', '\n')
}

// appendCommand appends a whole command.
func appendCommand(b []byte, args ...string) []byte {
	b = appendArray(b, len(args))
	for _, a := range args {
		b = appendBulk(b, a)
	}
	return b
}

// replyError is an error answer of the server. Unlike after any other error, further replies
// follow.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError marks the error as the client library marks its own.
func (replyError) RedisError() {}

// discreet removes the arguments of an unknown command from the answer, because those of AUTH are
// credentials.
func discreet(answer string) string {
	answer, _, _ = strings.Cut(answer, ", with args beginning with")
	return answer
}

// answered reports whether err is an answer of the server, so that the next reply can be read.
func answered(err error) bool { return errors.As(err, new(replyError)) }

// reader reads replies. A method's error is a [replyError], or the stream is broken.
type reader struct{ *bufio.Reader }

var errProtocol = errors.New("the server's reply is not what the protocol allows here")

// header reads the first line of a reply: its type, and the number of all types but simple strings.
func (r reader) header() (kind byte, n int64, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return 0, 0, errProtocol
	}
	kind, line = line[0], line[1:len(line)-2]
	switch kind {
	case '-':
		return kind, 0, replyError(discreet(string(line)))
	case '+':
		return kind, 0, nil
	case ':', '$', '*':
		if n, err = parseInt(line); err != nil {
			return 0, 0, err
		}
		return kind, n, nil
	}
	return 0, 0, fmt.Errorf("%w: type %q", errProtocol, kind)
}

// parseInt is strconv.ParseInt without a string.
func parseInt(digits []byte) (n int64, err error) {
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, errProtocol
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, errProtocol
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, nil
}

// array reads the length of an array before its elements; -1 for null.
func (r reader) array() (int, error) {
	kind, n, err := r.header()
	switch {
	case err != nil:
		return 0, err
	case kind == '*' && n >= -1:
		return int(n), nil
	case kind == '$' && n == -1:
		return -1, nil
	}
	return 0, errProtocol
}

// arrayOf reads the length of an array that must have n elements.
func (r reader) arrayOf(n int) error {
	got, err := r.array()
	if err == nil && got != n {
		err = errProtocol
	}
	return err
}

// bulk reads a string of any bytes; nil for null.
func (r reader) bulk() ([]byte, error) {
	kind, n, err := r.header()
	switch {
	case err != nil:
		return nil, err
	case (kind == '$' || kind == '*') && n == -1:
		return nil, nil
	case kind != '$' || n < 0:
		return nil, errProtocol
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	_, err = r.Discard(2)
	return b, err
}

// peek reads a string that there must be, and lends it to f.
func (r reader) peek(f func(b []byte)) error {
	none, err := r.lend(f)
	if none {
		return errProtocol
	}
	return err
}

// lend reads a string and calls f with it. It returns true for null.
func (r reader) lend(f func(b []byte)) (none bool, err error) {
	kind, n, err := r.header()
	switch {
	case err != nil:
		return false, err
	case (kind == '$' || kind == '*') && n == -1:
		return true, nil
	case kind != '$' || n < 0:
		return false, errProtocol
	}
	if n > int64(r.Size()) {
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			return false, err
		}
		f(b)
		n = 0
	} else {
		b, err := r.Peek(int(n))
		if err != nil {
			return false, err
		}
		f(b)
	}
	_, err = r.Discard(int(n) + 2)
	return false, err
}

// text reads a string that there must be.
func (r reader) text() (s string, err error) {
	err = r.peek(func(b []byte) { s = string(b) })
	return s, err
}

// integer reads an integer.
func (r reader) integer() (int64, error) {
	kind, n, err := r.header()
	if err == nil && kind != ':' {
		err = errProtocol
	}
	return n, err
}

// skip reads a reply of any type. It returns true for null.
func (r reader) skip() (none bool, err error) {
	kind, n, err := r.header()
	switch {
	case err != nil:
		return false, err
	case kind == '$' && n >= 0:
		_, err = r.Discard(int(n) + 2)
		return false, err
	case kind == '*':
		for range n {
			if _, err := r.skip(); err != nil && !answered(err) {
				return false, err
			}
		}
	}
	return n == -1 && kind != ':', nil
}
