package amqp

import (
	"encoding/binary"
	"sync"
)

// acks reads along what the broker sends on a connection, for the order in which it confirms: the client library puts confirmations back
// into the order of publishing, and a message that the broker answered for at once would seem to have waited for a slow one before it.
type acks struct {
	mu       sync.Mutex
	opened   uint16 // the channel that was opened last
	watchers map[uint16]func(ack)

	frame [header + method]byte // of the present frame, as much as matters
	have  int                   // bytes of it
	want  int                   // how many there are to be
	skip  int                   // bytes to pass over before the next frame
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
	basicAck      = 60<<16 | 80
	basicNack     = 60<<16 | 120
)

// read goes through what has come, which may begin and end within a frame.
func (a *acks) read(p []byte) {
	for len(p) > 0 {
		if a.skip > 0 {
			n := min(a.skip, len(p))
			a.skip, p = a.skip-n, p[n:]
			continue
		}
		if a.have < header {
			a.want = header
		}
		n := copy(a.frame[a.have:a.want], p)
		a.have, p = a.have+n, p[n:]
		if a.have < a.want {
			return
		}
		size := int(binary.BigEndian.Uint32(a.frame[3:]))
		if a.have == header && a.frame[0] == typeMethod && size > 0 {
			a.want = header + min(size, method)
			continue
		}
		a.tell()
		a.skip = header + size - a.have + frameEnd
		a.have = 0
	}
}

// tell passes on what the present frame says.
func (a *acks) tell() {
	if a.have < header+4 {
		return
	}
	channel := binary.BigEndian.Uint16(a.frame[1:])
	switch binary.BigEndian.Uint32(a.frame[header:]) {
	case channelOpenOk:
		a.mu.Lock()
		a.opened = channel
		a.mu.Unlock()
	case basicAck, basicNack:
		if a.have < header+method {
			return
		}
		a.mu.Lock()
		watcher := a.watchers[channel]
		a.mu.Unlock()
		if watcher != nil {
			watcher(ack{binary.BigEndian.Uint64(a.frame[header+4:]), a.frame[header+12]&1 != 0})
		}
	}
}

// latest is the channel that was opened last.
func (a *acks) latest() uint16 {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.opened
}

// watch calls f with all acks on a channel, as they come.
func (a *acks) watch(channel uint16, f func(ack)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watchers == nil {
		a.watchers = map[uint16]func(ack){}
	}
	a.watchers[channel] = f
}
