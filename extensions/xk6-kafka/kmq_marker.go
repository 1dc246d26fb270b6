//gosec:disable G115 -- what a marker says, in Java's numbers
package kafka

import (
	"container/heap"
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A marker says of a message, by its partition and offset, that a consumer has begun with it, and after how long it is sent again unless the marker
// of its end comes before. The bytes are those of KMQ's own library, big endian: the key is the partition (4) and the offset (8), the value 1 and
// milliseconds (8), or 0. Markers are in the partition that has the number of the message's.
const (
	markerKeyBytes   = 12
	startMarkerBytes = 9
	markerBytes      = markerKeyBytes + startMarkerBytes
)

var endOfMessage = []byte{0}

// startMarkers are for messages that a consumer begins with. All of them share their memory.
func startMarkers(topic string, messages []*kgo.Record, redeliverAfter time.Duration) []*kgo.Record {
	memory := make([]byte, 0, len(messages)*markerBytes)
	return markers(topic, messages, func(marker *kgo.Record, m *kgo.Record) {
		at := len(memory)
		memory = appendKey(memory, m)
		memory = append(memory, 1)
		memory = binary.BigEndian.AppendUint64(memory, uint64(redeliverAfter.Milliseconds())) // of an option that is not negative
		marker.Key, marker.Value = memory[at:at+markerKeyBytes:at+markerKeyBytes], memory[at+markerKeyBytes:len(memory):len(memory)]
	})
}

// endMarkers are for messages that are done with, or sent again.
func endMarkers(topic string, messages []*kgo.Record) []*kgo.Record {
	memory := make([]byte, 0, len(messages)*markerKeyBytes)
	return markers(topic, messages, func(marker *kgo.Record, m *kgo.Record) {
		at := len(memory)
		memory = appendKey(memory, m)
		marker.Key, marker.Value = memory[at:len(memory):len(memory)], endOfMessage
	})
}

func markers(topic string, messages []*kgo.Record, fill func(marker, message *kgo.Record)) []*kgo.Record {
	records := make([]kgo.Record, len(messages))
	all := make([]*kgo.Record, len(messages))
	for i, m := range messages {
		all[i] = &records[i]
		all[i].Topic, all[i].Partition = topic, m.Partition
		fill(all[i], m)
	}
	return all
}

func appendKey(to []byte, m *kgo.Record) []byte {
	to = binary.BigEndian.AppendUint32(to, uint32(m.Partition))
	return binary.BigEndian.AppendUint64(to, uint64(m.Offset))
}

// begun is a message that has a start marker.
type begun struct {
	offset int64 // of the message
	marker int64 // offset of the marker
	due    int64 // when it is sent again, in ms since the Unix epoch by the clock of the markers
	ended  bool  // or begun anew by a later marker
}

// inProgress is what the markers of one partition, read in their order, say of its messages.
type inProgress struct {
	messages map[int64]*begun // by offset
	byMarker []*begun         // in the order of the markers; the first may have ended
	byTime   dueFirst         // those that are not being sent again; any may have ended
	next     int64            // the offset after the last marker
	last     int64            // when the last marker was written, in ms since the Unix epoch
}

func newInProgress() *inProgress { return &inProgress{messages: map[int64]*begun{}} }

// read takes in the next marker. What is no marker is passed over.
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

// due takes those that are to be sent again. They stay in progress until the markers of their ends are read.
func (p *inProgress) due(now int64) (all []*begun) {
	for len(p.byTime) > 0 && (p.byTime[0].ended || p.byTime[0].due <= now) {
		if b, _ := heap.Pop(&p.byTime).(*begun); !b.ended {
			all = append(all, b)
		}
	}
	return all
}

// putBack is for one that could not be sent again: it is due again later.
func (p *inProgress) putBack(b *begun, due int64) {
	b.due = due
	heap.Push(&p.byTime, b)
}

// begin is the offset of the first marker that is still needed by who reads the markers from there.
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
