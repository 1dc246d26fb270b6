package amqp

import (
	"encoding/binary"
	"sync"
)

// frames reads along what the broker sends on a connection, for what the client library does not tell: the order in which the broker confirms, for the
// library puts confirmations back into the order of publishing, and a message that was answered for at once would seem to have waited for a slow one before
// it; and how many messages it has delivered, for the library keeps them in a buffer of its own.
type frames struct {
	mu        sync.Mutex
	opened    uint16 // the channel that was opened last
	watchers  map[uint16]func(ack)
	delivered map[uint16]uint64 // on each channel since it was opened

	// Only Read uses these.
	channel uint16                // on which the messages came that are not in delivered yet
	came    uint64                // how many they are
	frame   [header + method]byte // of the present frame, as much as matters
	have    int                   // bytes of it
	want    int                   // how many there are to be
	skip    int                   // bytes to pass over before the next frame
}

// ack is a basic.ack or a basic.nack: of one message, or of all up to it.
type ack struct {
	tag uint64
	all bool
}

// Sizes of AMQP 0-9-1, in bytes: a frame begins with type, channel and size and ends with a byte of its own, and a method that matters here
// has its two numbers, a delivery tag and some bits.
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

// read goes through what has come, which may begin and end within a frame.
func (f *frames) read(p []byte) {
	defer f.count()
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			f.skip, p = f.skip-n, p[n:]
			continue
		}
		if f.have == 0 && len(p) >= header+method { // as mostly: nothing needs to be put together
			size := int(binary.BigEndian.Uint32(p[3:]))
			if p[0] == typeMethod {
				f.tell(p[:header+min(size, method)])
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
		f.tell(f.frame[:f.have])
		f.skip = header + size - f.have + frameEnd
		f.have = 0
	}
}

// tell passes on what a frame says, by its first bytes.
func (f *frames) tell(frame []byte) {
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
		f.came++
	case channelOpenOk:
		f.count()
		f.mu.Lock()
		f.opened = channel
		delete(f.delivered, channel) // of another channel, which had the number before
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

// count adds up what has come on a channel: not one message at a time, as there may be many.
func (f *frames) count() {
	if f.came == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.delivered == nil {
		f.delivered = map[uint16]uint64{}
	}
	f.delivered[f.channel] += f.came
	f.came = 0
}

// deliveries is how many messages have come on a channel since it was opened.
func (f *frames) deliveries(channel uint16) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.delivered[channel]
}

// latest is the channel that was opened last.
func (f *frames) latest() uint16 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened
}

// watch calls watcher with all acks on a channel, as they come.
func (f *frames) watch(channel uint16, watcher func(ack)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchers == nil {
		f.watchers = map[uint16]func(ack){}
	}
	f.watchers[channel] = watcher
}
