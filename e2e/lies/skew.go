package lies

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// The offsets of times and checksum in the stamp in a message's header.
const (
	header                    = "X-K6-Stamp"
	due, sent, checksum, size = 20, 28, 36, 40
)

// skewClock forwards messages with stamps of a machine whose clock is an hour ahead.
func skewClock(ctx context.Context, s *Scene) error {
	conn, err := nats.Connect(strings.Replace(s.URL, "jetstream://", "nats://", 1))
	if err != nil {
		return fmt.Errorf("skew: %w", err)
	}
	defer conn.Close()
	_, err = conn.Subscribe(s.topic, func(m *nats.Msg) {
		stamp, err := base64.RawStdEncoding.DecodeString(m.Header.Get(header))
		if err != nil || len(stamp) != size {
			return
		}
		for _, at := range []int{due, sent} {
			if ns := binary.LittleEndian.Uint64(stamp[at:]); ns != 0 {
				binary.LittleEndian.PutUint64(stamp[at:], ns+uint64(time.Hour))
			}
		}
		castagnoli := crc32.MakeTable(crc32.Castagnoli)
		sum := crc32.Update(crc32.Checksum(stamp[:checksum], castagnoli), castagnoli, m.Data)
		binary.LittleEndian.PutUint32(stamp[checksum:], sum)
		out := nats.NewMsg(s.topic + "-skewed")
		out.Data = m.Data
		out.Header.Set(header, base64.RawStdEncoding.EncodeToString(stamp))
		_ = conn.PublishMsg(out) // without it nothing arrives, and the experiment fails
	})
	if err != nil {
		return fmt.Errorf("skew: %w", err)
	}
	<-ctx.Done()
	return nil
}
