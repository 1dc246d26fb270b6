//gosec:disable G115 -- markers have Java's signed numbers
package kafka

import (
	"container/heap"
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A marker has the format of KMQ's own library, big endian. Key: partition (4) and offset (8) of
// the message. Value: 1 and redeliverAfter in ms (8) for a start, 0 for an end. It is in the
// partition with the number of the message's.
const (
	markerKeyBytes   = 12
	startMarkerBytes = 9
)

var endOfMessage = []byte{0}

// startMarkers returns the markers of messages that a consumer begins with.
func startMarkers(topic string, messages []*kgo.Record, redeliverAfter time.Duration) []*kgo.Record {
	value := binary.BigEndian.AppendUint64([]byte{1}, uint64(redeliverAfter.Milliseconds()))
	return markers(topic, messages, value)
}

// endMarkers returns the markers of messages that were settled or sent again.
func endMarkers(topic string, messages []*kgo.Record) []*kgo.Record {
	return markers(topic, messages, endOfMessage)
}

// markers allocates once for all records and once for all keys.
func markers(topic string, messages []*kgo.Record, value []byte) []*kgo.Record {
	keys := make([]byte, 0, len(messages)*markerKeyBytes)
	records := make([]kgo.Record, len(messages))
	all := make([]*kgo.Record, len(messages))
	for i, m := range messages {
		begin := len(keys)
		keys = binary.BigEndian.AppendUint32(keys, uint32(m.Partition))
		keys = binary.BigEndian.AppendUint64(keys, uint64(m.Offset))
		records[i] = kgo.Record{
			Topic:     topic,
			Partition: m.Partition,
			Key:       keys[begin:len(keys):len(keys)],
			Value:     value,
		}
		all[i] = &records[i]
	}
	return all
}

// begun is a message that has a start marker.
type begun struct {
	offset int64 // of the message
	marker int64 // offset of the marker
	due    int64 // when it is sent again, in ms since the Unix epoch by the clock of the markers
	ended  bool  // or begun again by a later marker
}

// inProgress holds the begun messages of one partition, from its markers read in their order.
type inProgress struct {
	messages map[int64]*begun // by offset
	byMarker []*begun         // in the order of the markers; the first may have ended
	byTime   dueFirst         // without messages that are being sent again; any may have ended
	next     int64            // the offset after the last marker
	last     int64            // when the last marker was written, in ms since the Unix epoch
}

func newInProgress() *inProgress { return &inProgress{messages: map[int64]*begun{}} }

// read adds the next marker. It skips other records.
func (p *inProgress) read(r *kgo.Record) {
	p.next, p.last = r.Offset+1, r.Timestamp.UnixMilli()
	if len(r.Key) != markerKeyBytes || len(r.Value) == 0 {
		return
	}
	offset := int64(binary.BigEndian.Uint64(r.Key[4:]))
	if b := p.messages[offset]; b != nil {
		b.ended = true
		delete(p.messages, offset)
	}
	if r.Value[0] != 1 || len(r.Value) != startMarkerBytes {
		return
	}
	b := &begun{offset: offset, marker: r.Offset, due: p.last + int64(binary.BigEndian.Uint64(r.Value[1:]))}
	p.messages[offset] = b
	p.byMarker = append(p.byMarker, b)
	heap.Push(&p.byTime, b)
}

// due removes the due messages from byTime. They stay in progress until their end markers are read.
func (p *inProgress) due(now int64) (all []*begun) {
	for len(p.byTime) > 0 && (p.byTime[0].ended || p.byTime[0].due <= now) {
		if b, _ := heap.Pop(&p.byTime).(*begun); !b.ended {
			all = append(all, b)
		}
	}
	return all
}

// putBack makes a message due later that could not be sent again.
func (p *inProgress) putBack(b *begun, due int64) {
	b.due = due
	heap.Push(&p.byTime, b)
}

// begin returns the offset of the first marker that a new tracker needs.
func (p *inProgress) begin() int64 {
	for len(p.byMarker) > 0 && p.byMarker[0].ended {
		p.byMarker[0] = nil
		p.byMarker = p.byMarker[1:]
	}
	if len(p.byMarker) > 0 {
		return p.byMarker[0].marker
	}
	return p.next
}

// dueFirst is a heap.
type dueFirst []*begun

func (d dueFirst) Len() int           { return len(d) }
func (d dueFirst) Less(i, j int) bool { return d[i].due < d[j].due }
func (d dueFirst) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dueFirst) Push(b any)        { *d = append(*d, b.(*begun)) } //nolint:forcetypeassert // it holds nothing else
func (d *dueFirst) Pop() any {
	last := len(*d) - 1
	b := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return b
}
