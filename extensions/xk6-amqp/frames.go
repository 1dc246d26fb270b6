package amqp

import (
	"encoding/binary"
	"sync"
)

// frames parses the broker's frames for two facts that the client library hides: the order of the
// broker's confirmations, which the library replaces by the order of publishing, and the number of
// deliveries, which the library buffers.
type frames struct {
	mu        sync.Mutex
	opened    uint16 // the channel opened last
	watchers  map[uint16]func(ack)
	delivered map[uint16]uint64 // on each channel since it was opened

	// Used by read only.
	channel uint16                // of the messages that are not in delivered yet
	arrived uint64                // their number
	frame   [header + method]byte // the start of the present frame
	have    int                   // bytes in frame
	want    int                   // bytes needed in frame
	skip    int                   // bytes to skip before the next frame
}

// ack is a basic.ack or a basic.nack of one message, or of all up to it.
type ack struct {
	tag uint64
	all bool
}

// Sizes of AMQP 0-9-1 in bytes. A frame has a header (type, channel, size), a payload and an end
// byte. method is the part of a method that is used here: class, method, delivery tag and bits.
const (
	header     = 1 + 2 + 4
	method     = 2 + 2 + 8 + 1
	frameEnd   = 1
	typeMethod = 1
)

// Numbers of classes and methods.
const (
	channelOpenOk = 20<<16 | 11
	basicDeliver  = 60<<16 | 60
	basicAck      = 60<<16 | 80
	basicNack     = 60<<16 | 120
)

// read parses bytes, which may begin and end within a frame.
func (f *frames) read(p []byte) {
	defer f.count()
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			f.skip, p = f.skip-n, p[n:]
			continue
		}
		if f.have == 0 && len(p) >= header+method { // the common case: the start is in one piece
			size := int(binary.BigEndian.Uint32(p[3:]))
			if p[0] == typeMethod {
				f.handle(p[:header+min(size, method)])
			}
			f.skip = header + size + frameEnd
			continue
		}
		if f.have < header {
			f.want = header
		}
		n := copy(f.frame[f.have:f.want], p)
		f.have, p = f.have+n, p[n:]
		if f.have < f.want {
			return
		}
		size := int(binary.BigEndian.Uint32(f.frame[3:]))
		if f.have == header && f.frame[0] == typeMethod && size > 0 {
			f.want = header + min(size, method)
			continue
		}
		f.handle(f.frame[:f.have])
		f.skip = header + size - f.have + frameEnd
		f.have = 0
	}
}

// handle handles a frame by its first bytes.
func (f *frames) handle(frame []byte) {
	if len(frame) < header+4 {
		return
	}
	channel := binary.BigEndian.Uint16(frame[1:])
	switch binary.BigEndian.Uint32(frame[header:]) {
	case basicDeliver:
		if channel != f.channel {
			f.count()
			f.channel = channel
		}
		f.arrived++
	case channelOpenOk:
		f.count()
		f.mu.Lock()
		f.opened = channel
		delete(f.delivered, channel) // an earlier channel had the number
		f.mu.Unlock()
	case basicAck, basicNack:
		if len(frame) < header+method {
			return
		}
		f.mu.Lock()
		watcher := f.watchers[channel]
		f.mu.Unlock()
		if watcher != nil {
			watcher(ack{binary.BigEndian.Uint64(frame[header+4:]), frame[header+12]&1 != 0})
		}
	}
}

// count adds the arrived messages to delivered, many at a time.
func (f *frames) count() {
	if f.arrived == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.delivered == nil {
		f.delivered = map[uint16]uint64{}
	}
	f.delivered[f.channel] += f.arrived
	f.arrived = 0
}

// deliveries returns how many messages arrived on a channel since it was opened.
func (f *frames) deliveries(channel uint16) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.delivered[channel]
}

// latest returns the channel opened last.
func (f *frames) latest() uint16 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened
}

// watch calls watcher with every ack on a channel.
func (f *frames) watch(channel uint16, watcher func(ack)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchers == nil {
		f.watchers = map[uint16]func(ack){}
	}
	f.watchers[channel] = watcher
}
