package kurrentdb

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/streams"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// correlation is the server's metadata for events that belong together: a message's key.
const correlation = "$correlationId"

// The names of an event's own properties on the wire.
const (
	wireType    = "type"
	wireContent = "content-type"
	wireCreated = "created"
)

// encode converts a message to an event.
func encode(m *driver.Message, kind map[string]string) (*streams.AppendReq_ProposedMessage, error) {
	metadata, err := encodeMetadata(m)
	if err != nil {
		return nil, err
	}
	if own, ok := m.Properties["eventType"].(string); ok {
		kind = kinds(own, kind[wireContent])
	}
	return &streams.AppendReq_ProposedMessage{Id: newID(), Metadata: kind, CustomMetadata: metadata, Data: m.Body}, nil
}

// kinds returns an event's own properties.
func kinds(eventType, contentType string) map[string]string {
	return map[string]string{wireType: eventType, wireContent: contentType}
}

// size returns the bytes of an event as the server counts them.
func size(e *streams.AppendReq_ProposedMessage) int {
	return len(e.GetData()) + len(e.GetCustomMetadata()) + 2*len(e.GetMetadata()[wireType])
}

// newID returns a random UUID, by which the server recognizes an event sent twice.
//
//gosec:disable G115,G404 -- bits, no numbers, and no secret
func newID() *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits:  int64(rand.Uint64()&^0xf000 | 0x4000),
		LeastSignificantBits: int64(rand.Uint64()>>2 | 1<<63),
	}}}
}

// encodeMetadata converts headers and key to a JSON object of text; nil if there are none.
func encodeMetadata(m *driver.Message) ([]byte, error) {
	if len(m.Headers) == 0 && m.Key == nil {
		return nil, nil
	}
	all := make(map[string]string, len(m.Headers)+1)
	if m.Key != nil {
		if !utf8.Valid(m.Key) {
			return nil, fmt.Errorf("%w: its key is no text in UTF-8, as a correlation id is", errMessage)
		}
		all[correlation] = string(m.Key)
	}
	for _, h := range m.Headers {
		if !utf8.ValidString(h.Name) || !utf8.Valid(h.Value) {
			return nil, fmt.Errorf("%w: header %q is no text in UTF-8, as metadata in JSON is", errMessage, h.Name)
		}
		if _, twice := all[h.Name]; twice {
			return nil, fmt.Errorf("%w: header %q is there twice, and metadata has each name once", errMessage, h.Name)
		}
		all[h.Name] = string(h.Value)
	}
	return json.Marshal(all)
}

// decodeMetadata sets a message's key and headers, sorted by name, from its event's metadata.
// Values other than strings are their JSON. Metadata other than an object is left out.
func decodeMetadata(metadata []byte, m *driver.Message) {
	var all map[string]json.RawMessage
	if len(metadata) == 0 || json.Unmarshal(metadata, &all) != nil {
		return
	}
	for name, raw := range all {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		if name == correlation {
			m.Key = []byte(text)
			continue
		}
		m.Headers = append(m.Headers, driver.Header{Name: name, Value: []byte(text)})
	}
	slices.SortFunc(m.Headers, func(a, b driver.Header) int { return strings.Compare(a.Name, b.Name) })
}

// recorded is an event of either kind of subscription.
type recorded interface {
	GetId() *shared.UUID
	GetStreamRevision() uint64
	GetMetadata() map[string]string
	GetCustomMetadata() []byte
	GetData() []byte
}

// delivery is a received message.
type delivery struct {
	message  driver.Message // until it is handed over
	revision uint64
	created  string
	id       *shared.UUID  // for settling
	from     *subscription // nil if nothing is settled
	settled  bool          // guarded by from
}

// arrived converts an event. at is the event in the subscription's stream, or a link to it.
func arrived(event, at recorded, topic string, received int64) *delivery {
	d := &delivery{revision: at.GetStreamRevision(), id: at.GetId()}
	own := event.GetMetadata()
	d.created = own[wireCreated]
	d.message = driver.Message{Topic: topic, Received: received, Body: event.GetData(), Token: d}
	decodeMetadata(event.GetCustomMetadata(), &d.message)
	if t := own[wireType]; t != plainType && t != "" {
		d.message.Properties = driver.Values{"eventType": t}
	}
	return d
}

func hand(b driver.Batch, deliveries []*delivery) {
	for i, d := range deliveries {
		b[i], d.message = d.message, driver.Message{}
	}
}

// place returns an event's revision and the time when the server wrote it.
func place(m *driver.Message) driver.Place {
	d, ok := m.Token.(*delivery)
	if !ok {
		return driver.Place{}
	}
	p := driver.Place{Position: driver.At(d.revision)}
	if ticks, err := strconv.ParseInt(d.created, 10, 64); err == nil {
		p.Timestamp = 100 * ticks // of 100 ns, since the Unix epoch
	}
	return p
}
