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

// The stamp that rides in a message's header: where its times and its checksum are.
const (
	header                    = "X-K6-Stamp"
	due, sent, checksum, size = 20, 28, 36, 40
)

// skewClock passes messages on as if they had been sent by a machine whose clock is an hour ahead: it writes their stamps anew.
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
		binary.LittleEndian.PutUint32(stamp[checksum:], crc32.Update(crc32.Checksum(stamp[:checksum], castagnoli), castagnoli, m.Data))
		out := nats.NewMsg(s.topic + "-skewed")
		out.Data = m.Data
		out.Header.Set(header, base64.RawStdEncoding.EncodeToString(stamp))
		_ = conn.PublishMsg(out) // where it fails nothing arrives, and the experiment shows nothing
	})
	if err != nil {
		return fmt.Errorf("skew: %w", err)
	}
	<-ctx.Done()
	return nil
}
