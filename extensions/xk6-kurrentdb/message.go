package kurrentdb

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/streams"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// correlation is the name that the server knows among an event's metadata for what belongs together: a message's key.
const correlation = "$correlationId"

// The names of an event's own properties on the wire.
const (
	wireType    = "type"
	wireContent = "content-type"
	wireCreated = "created"
)

// encode makes an event of a message.
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

// kinds are an event's own properties.
func kinds(eventType, contentType string) map[string]string {
	return map[string]string{wireType: eventType, wireContent: contentType}
}

// size is what the server counts of an event.
func size(e *streams.AppendReq_ProposedMessage) int {
	return len(e.GetData()) + len(e.GetCustomMetadata()) + 2*len(e.GetMetadata()[wireType])
}

// newID is a random UUID, by which the server would know the event if it were sent twice.
//
//gosec:disable G115,G404 -- bits, no numbers, and no secret
func newID() *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits:  int64(rand.Uint64()&^0xf000 | 0x4000),
		LeastSignificantBits: int64(rand.Uint64()>>2 | 1<<63),
	}}}
}

// encodeMetadata makes a JSON object of headers and key, which is text; nil where there are none.
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

// decodeMetadata gives a message what its event's metadata says, in the order of the names. Of others' events, what is no JSON object is left out, and a
// value that is no string is its JSON.
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

// recorded is an event as both sorts of subscriptions bring it.
type recorded interface {
	GetId() *shared.UUID
	GetStreamRevision() uint64
	GetMetadata() map[string]string
	GetCustomMetadata() []byte
	GetData() []byte
}

// delivery is a message that came.
type delivery struct {
	message  driver.Message // until it is handed over
	revision uint64
	created  string
	id       *shared.UUID  // by which it is settled
	from     *subscription // nil where nothing is settled
	settled  bool          // guarded by from
}

// arrived gives an event the driver's form. at is what the subscription's stream has: the event, or a link to it.
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

// hand gives messages to the application.
func hand(b driver.Batch, came []*delivery) {
	for i, d := range came {
		b[i], d.message = d.message, driver.Message{}
	}
}
