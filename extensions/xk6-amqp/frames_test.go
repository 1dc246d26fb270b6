package amqp

import (
	"encoding/binary"
	"slices"
	"testing"
)

func frame(kind byte, channel uint16, payload ...byte) []byte {
	f := []byte{kind}
	f = binary.BigEndian.AppendUint16(f, channel)
	f = binary.BigEndian.AppendUint32(f, uint32(len(payload)))
	return append(append(f, payload...), 0xce)
}

func called(number uint32, arguments ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, number), arguments...)
}

func answered(number uint32, tag uint64, bits byte) []byte {
	return append(binary.BigEndian.AppendUint64(called(number), tag), bits)
}

// stream7 is what a broker might send, and what is to be heard of it on channel 7, on which three messages come.
func stream7() (sent []byte, want []ack) {
	sent = slices.Concat(
		frame(1, 0, called(10<<16|30, 1, 2, 3)...),
		frame(8, 0),                             // a heartbeat
		frame(1, 7, called(basicDeliver, 1)...), // when another channel had the number
		frame(1, 7, called(channelOpenOk, 0, 0, 0, 0)...),
		frame(1, 7, called(basicDeliver, make([]byte, 30)...)...),
		frame(1, 8, called(basicDeliver, make([]byte, 30)...)...), // another channel's
		frame(1, 7, called(basicDeliver, make([]byte, 30)...)...),
		frame(1, 7, answered(basicAck, 3, 0)...),
		frame(1, 8, answered(basicAck, 4, 0)...), // another channel's
		frame(1, 7, called(60<<16|50, make([]byte, 40)...)...),
		frame(2, 7, make([]byte, 20)...),
		frame(3, 7, answered(basicAck, 9, 0)...), // a body, whatever it looks like
		frame(1, 7, answered(basicNack, 1<<40, 3)...),
		frame(1, 7, called(basicAck, 1)...), // too short to be one
		frame(1, 7, answered(basicAck, 5, 1)...),
		frame(1, 7, called(basicDeliver)...),
	)
	return sent, []ack{{3, false}, {1 << 40, true}, {5, true}}
}

func TestAnswersAreReadWhereverTheStreamIsCut(t *testing.T) {
	sent, want := stream7()
	for size := 1; size <= len(sent); size++ {
		var a frames
		var got []ack
		a.watch(7, func(x ack) { got = append(got, x) })
		for chunk := range slices.Chunk(sent, size) {
			a.read(chunk)
		}
		if !slices.Equal(got, want) || a.latest() != 7 {
			t.Fatalf("in pieces of %d bytes: %v on channel %d, want %v", size, got, a.latest(), want)
		}
		if n := a.deliveries(7); n != 3 {
			t.Fatalf("in pieces of %d bytes: %d messages, want 3", size, n)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	sent, _ := stream7()
	f.Add(sent, uint8(3))
	f.Add([]byte{1, 0, 7, 255, 255, 255, 255, 0}, uint8(1))
	f.Fuzz(func(t *testing.T, sent []byte, size uint8) {
		var whole, cut frames
		var one, other []ack
		whole.watch(7, func(x ack) { one = append(one, x) })
		cut.watch(7, func(x ack) { other = append(other, x) })
		whole.read(sent)
		for chunk := range slices.Chunk(sent, int(size)+1) {
			cut.read(chunk)
		}
		if !slices.Equal(one, other) || whole.deliveries(7) != cut.deliveries(7) {
			t.Fatalf("in one piece %v, in pieces of %d bytes %v", one, int(size)+1, other)
		}
	})
}
