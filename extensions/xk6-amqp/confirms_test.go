package amqp_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// scripted is a server that says what a test wants it to: it takes every connection, channel and message.
type scripted struct {
	*testing.T
	net.Listener

	published chan uint16 // the channel that each message came on
	mu        sync.Mutex  // of what is written
	conns     []net.Conn
}

func newScripted(t *testing.T) *scripted {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{T: t, Listener: l, published: make(chan uint16, 1024)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			serving.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			_ = c.Close()
		}
		s.mu.Unlock()
		serving.Wait()
	})
	return s
}

// Classes and methods of AMQP 0-9-1, one number in two.
const (
	start, startOk, tune, tuneOk = 10<<16 | 10, 10<<16 | 11, 10<<16 | 30, 10<<16 | 31
	open, openOk                 = 10<<16 | 40, 10<<16 | 41
	bye, byeOk                   = 10<<16 | 50, 10<<16 | 51
	channelOpen, channelOpenOk   = 20<<16 | 10, 20<<16 | 11
	channelClose, channelCloseOk = 20<<16 | 40, 20<<16 | 41
	publish, confirmed           = 60<<16 | 40, 60<<16 | 80
	confirm, confirmOk           = 85<<16 | 10, 85<<16 | 11
)

func (s *scripted) serve(c net.Conn) {
	r := bufio.NewReader(c)
	if _, err := io.ReadFull(r, make([]byte, 8)); err != nil { // which protocol it is
		return
	}
	s.say(c, 0, start, append([]byte{0, 9, 0, 0, 0, 0}, "\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US"...)...)
	var head [7]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
		if _, err := io.ReadFull(r, payload); err != nil {
			return
		}
		if head[0] != 1 {
			continue
		}
		channel := binary.BigEndian.Uint16(head[1:])
		switch binary.BigEndian.Uint32(payload) {
		case startOk:
			s.say(c, 0, tune, 0, 0, 0, 2, 0, 0, 0, 0)
		case open:
			s.say(c, 0, openOk, 0)
		case bye:
			s.say(c, 0, byeOk)
		case channelOpen:
			s.say(c, channel, channelOpenOk, 0, 0, 0, 0)
		case channelClose:
			s.say(c, channel, channelCloseOk)
		case confirm:
			s.say(c, channel, confirmOk)
		case publish:
			s.published <- channel
		}
	}
}

func (s *scripted) say(c net.Conn, channel uint16, method uint32, arguments ...byte) {
	frame := binary.BigEndian.AppendUint16([]byte{1}, channel)
	frame = binary.BigEndian.AppendUint32(frame, uint32(4+len(arguments)))
	frame = append(append(binary.BigEndian.AppendUint32(frame, method), arguments...), 0xce)
	_, _ = c.Write(frame) // the client may have gone
}

// confirms answers for a message on the connection that was opened last, which is the one that publishes.
func (s *scripted) confirms(channel uint16, tag uint64, multiple byte) {
	s.mu.Lock()
	c := s.conns[len(s.conns)-1]
	s.mu.Unlock()
	s.say(c, channel, confirmed, append(binary.BigEndian.AppendUint64(nil, tag), multiple)...)
}

// Each message is done when the broker has answered for it, and not when it has answered for those before it too.
func TestAMessageDoesNotWaitForTheConfirmationOfAnother(t *testing.T) {
	s := newScripted(t)
	r := newRig(t, fmt.Sprintf("rabbitmq://guest:guest@%s", s.Addr()))
	p := r.producer("orders", 100, nil)
	const messages = 6
	done := make(chan int, messages)
	b := make(driver.Batch, messages)
	for i := range b {
		b[i].Body = []byte("x")
	}
	p.Send(context.Background(), b, func(i int, err error) {
		if err != nil {
			t.Error(err)
		}
		done <- i + 1
	})
	var channel uint16
	for range messages {
		channel = <-s.published
	}
	for _, step := range []struct {
		tag      uint64
		multiple byte
		want     []int
	}{{3, 0, []int{3}}, {2, 1, []int{1, 2}}, {6, 0, []int{6}}, {6, 0, nil}, {99, 0, nil}, {5, 1, []int{4, 5}}} {
		s.confirms(channel, step.tag, step.multiple)
		var got []int
		for range step.want {
			select {
			case i := <-done:
				got = append(got, i)
			case <-r.context().Done():
				t.Fatalf("the broker confirmed %d (multiple %d), done are %v, want %v", step.tag, step.multiple, got, step.want)
			}
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("the broker confirmed %d (multiple %d), done are %v, want %v", step.tag, step.multiple, got, step.want)
		}
	}
}
