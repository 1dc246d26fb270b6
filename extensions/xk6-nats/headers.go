package nats

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// outgoing lends messages with headers to nats.go, which copies them before its call returns.
var outgoing = sync.Pool{New: func() any { return &nats.Msg{Header: nats.Header{}} }}

// publish hands m to nats.go, which buffers it for a goroutine that writes to the socket at once.
func publish(nc *nats.Conn, subject, reply string, m *driver.Message) error {
	if len(m.Headers) == 0 {
		if reply == "" {
			return nc.Publish(subject, m.Body)
		}
		return nc.PublishRequest(subject, reply, m.Body)
	}
	out, _ := outgoing.Get().(*nats.Msg)
	defer outgoing.Put(out)
	err := setHeaders(out.Header, m.Headers)
	if err == nil {
		out.Subject, out.Reply, out.Data = subject, reply, m.Body
		err = nc.PublishMsg(out)
		out.Data = nil
	}
	if err != nil {
		clear(out.Header) // nothing of what was refused may come near the next message
	}
	return err
}

// setHeaders fills h, which had the headers of another message, and reuses its names. nats.go
// checks all names, so an invalid one must not get in.
func setHeaders(h nats.Header, headers []driver.Header) error {
	const many = 64
	if len(h) > many {
		clear(h)
	}
	for name, values := range h {
		h[name] = values[:0]
	}
	for _, header := range headers {
		values, present := h[header.Name]
		if !present && !legal(header.Name) {
			return fmt.Errorf("header %q: %w", header.Name, errHeaderName)
		}
		if !intact(header.Value) {
			return fmt.Errorf("header %q: %w", header.Name, errHeaderValue)
		}
		h[header.Name] = append(values, string(header.Value))
	}
	return nil
}

// separators are printable characters that nats.go refuses in a name.
const separators = `"()/,:;<=>?@[\]{}`

// legal reports whether nats.go takes a name.
func legal(name string) bool {
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' || strings.IndexByte(separators, c) >= 0 {
			return false
		}
	}
	return name != ""
}

// intact reports whether nats.go sends a value unchanged. It trims the ends and replaces line
// breaks.
func intact(value []byte) bool {
	if len(value) == 0 {
		return true
	}
	blank := func(c byte) bool { return c == ' ' || c == '\t' }
	return !blank(value[0]) && !blank(value[len(value)-1]) && bytes.IndexByte(value, '\r') < 0 &&
		bytes.IndexByte(value, '\n') < 0
}

// headersOf returns the headers of a received message, by name, because nats.go does not keep the
// order of the wire.
func headersOf(h nats.Header) []driver.Header {
	if len(h) == 0 {
		return nil
	}
	count, size := 0, 0
	for _, values := range h {
		count += len(values)
		for _, v := range values {
			size += len(v)
		}
	}
	headers, text := make([]driver.Header, 0, count), make([]byte, 0, size)
	for name, values := range h {
		for _, v := range values {
			start := len(text)
			text = append(text, v...)
			headers = append(headers, driver.Header{Name: name, Value: text[start:len(text):len(text)]})
		}
	}
	if len(h) > 1 {
		slices.SortStableFunc(headers, func(a, b driver.Header) int { return cmp.Compare(a.Name, b.Name) })
	}
	return headers
}
