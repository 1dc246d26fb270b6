package rocketmq

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// bornHost is the name of this machine.
var bornHost = sync.OnceValue(func() string { name, _ := os.Hostname(); return name })

// Properties with special meanings.
const (
	emptyBody     = "xk6-broker-empty"  // a body of no length, which the broker would not take
	emptyHeader   = "xk6-broker-empty-" // the value, of no length, of the header whose name follows
	groupProperty = "__SHARDINGKEY"     // the message group, which servers tell as a property, too
)

// encode converts a message to the protocol's form. Its properties override the producer's.
func (p *producer) encode(m *driver.Message) (*v2.Message, error) {
	system := &v2.SystemProperties{
		MessageId: p.ids.next(), BodyEncoding: v2.Encoding_IDENTITY, BornTimestamp: timestamppb.Now(), BornHost: bornHost(),
	}
	if tag := chosen(p.options, m.Properties, "tag", driver.Values.String); tag != "" {
		system.Tag = &tag
	}
	delay := chosen(p.options, m.Properties, "deliverAfter", driver.Values.Duration)
	if delay > 0 {
		system.DeliveryTimestamp = timestamppb.New(time.Now().Add(delay))
	}
	switch {
	case p.fifo:
		system.MessageType = v2.MessageType_FIFO
	case delay > 0:
		system.MessageType = v2.MessageType_DELAY
	default:
		system.MessageType = v2.MessageType_NORMAL
	}
	if len(m.Key) > 0 {
		if !utf8.Valid(m.Key) {
			return nil, &driver.OptionError{
				Name: "key",
				Err:  errors.New("it is not text in UTF-8, which is what RocketMQ's keys are"),
			}
		}
		system.Keys = []string{string(m.Key)}
	}
	if p.fifo {
		group := p.group
		if len(m.Key) > 0 {
			group = string(m.Key)
		}
		system.MessageGroup = &group
	}
	headers, err := encodeHeaders(m)
	if err != nil {
		return nil, err
	}
	return &v2.Message{Topic: p.resource, UserProperties: headers, SystemProperties: system, Body: body(m)}, nil
}

// chosen returns a property of the message, else of the producer.
func chosen[T any](producer, message driver.Values, name string, get func(driver.Values, string) T) T {
	if _, ok := message[name]; ok {
		return get(message, name)
	}
	return get(producer, name)
}

// body returns a placeholder for an empty body, which the broker would refuse.
func body(m *driver.Message) []byte {
	if len(m.Body) == 0 {
		return []byte{0}
	}
	return m.Body
}

func encodeHeaders(m *driver.Message) (map[string]string, error) {
	if len(m.Headers) == 0 && len(m.Body) > 0 {
		return nil, nil // no headers are no error
	}
	all := make(map[string]string, len(m.Headers)+1)
	if len(m.Body) == 0 {
		all[emptyBody] = "1"
	}
	for _, h := range m.Headers {
		name, value := h.Name, string(h.Value)
		if !printable(name) || !printable(value) {
			return nil, &driver.OptionError{
				Name: "headers",
				Err:  fmt.Errorf("%q or its value is not text in UTF-8 without control characters", name),
			}
		}
		_, twice := all[name]
		_, empty := all[emptyHeader+name]
		if twice || empty {
			return nil, &driver.OptionError{
				Name: "headers",
				Err:  fmt.Errorf("%q is given twice, and a message has each property once", name),
			}
		}
		if value == "" {
			name, value = emptyHeader+name, "1"
		}
		all[name] = value
	}
	return all, nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// decode reads a message that came.
func decode(m *v2.Message, into *driver.Message) error {
	into.Body = m.GetBody()
	if m.GetSystemProperties().GetBodyEncoding() == v2.Encoding_GZIP {
		r, err := gzip.NewReader(bytes.NewReader(m.GetBody()))
		if err != nil {
			return fmt.Errorf("a body that is not compressed as it says: %w", err)
		}
		if into.Body, err = io.ReadAll(r); err != nil {
			return fmt.Errorf("a body that is not compressed as it says: %w", err)
		}
	}
	system := m.GetSystemProperties()
	if keys := system.GetKeys(); len(keys) > 0 { // servers part them where a space is
		into.Key = []byte(strings.Join(keys, " "))
	}
	if system.Tag != nil {
		into.Properties = driver.Values{"tag": system.GetTag()}
	}
	if len(m.GetUserProperties()) == 0 {
		return nil
	}
	into.Headers = make([]driver.Header, 0, len(m.GetUserProperties()))
	for _, name := range slices.Sorted(maps.Keys(m.GetUserProperties())) {
		if name == emptyBody {
			into.Body = nil
		} else if name == groupProperty {
			continue
		} else if empty, ok := strings.CutPrefix(name, emptyHeader); ok {
			into.Headers = append(into.Headers, driver.Header{Name: empty})
		} else {
			into.Headers = append(into.Headers, driver.Header{Name: name, Value: []byte(m.GetUserProperties()[name])})
		}
	}
	return nil
}

// ids makes identifiers of messages: a version, a random number and a counter.
type ids struct {
	prefix string
	last   atomic.Uint64
}

func newIDs() *ids {
	var prefix [8]byte
	for i, n := 0, rand.Uint64(); i < len(prefix); i, n = i+1, n>>8 { //gosec:disable G404 -- a name, no secret
		prefix[i] = byte(n)
	}
	return &ids{prefix: "01" + strings.ToUpper(hex.EncodeToString(prefix[:]))}
}

func (s *ids) next() string { return fmt.Sprintf("%s%016X", s.prefix, s.last.Add(1)) }
