package kafka

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Some messages of a producer choose their partition, before their key, and the rest go where the partitioner sends them; whatever that is.
func TestSomeMessagesChooseTheirPartition(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 3)
	for _, given := range []map[string]any{{"partitioner": "sticky"}, {"partitioner": "uniform"}, {"partitioner": "roundrobin"}, {"partition": 1}} {
		t.Run(fmt.Sprint(given), func(t *testing.T) {
			c := f.consumer(t, topic, "")
			defer func() { closed(t, c) }()
			b := numbered("m", 60)
			for i := range b {
				switch i % 3 {
				case 0:
					b[i].Properties = driver.Values{"partition": int64(i / 3 % 3)}
					b[i].Key = []byte("key")
				case 1:
					b[i].Properties = driver.Values{"partition": int64(-1)} // which chooses none
					b[i].Key = []byte("key")
				}
			}
			f.send(t, f.producer(t, topic, given), b)
			rest := map[int32]int{}
			for _, m := range take(t, c, len(b)) {
				var i int
				if _, err := fmt.Sscanf(string(m.Body), "m-%d", &i); err != nil {
					t.Fatal(err)
				}
				if want := int32(i / 3 % 3); i%3 == 0 && m.Partition != want {
					t.Errorf("message %d went to partition %d, and chose %d", i, m.Partition, want)
				}
				if i%3 == 1 {
					rest[m.Partition]++
				}
			}
			if want := map[any]int{"roundrobin": 3}[given["partitioner"]]; len(rest) != max(1, want) {
				t.Errorf("those of one key went to partitions %v", rest)
			}
		})
	}
	err := sendAll(within(t), f.producer(t, topic, nil), driver.Batch{{Properties: driver.Values{"partition": int64(1 << 40)}}})[0]
	if kind := f.address.Driver.KindOf(err); kind != driver.Rejected || !strings.Contains(err.Error(), `option "partition": `) || !strings.Contains(err.Error(), "from 3 available") {
		t.Errorf("%s: %v", kind, err)
	}
}

// Without acks the client knows where it sent a message, and nobody knows at which offset it is.
func TestReceiptsWithoutAcks(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 3)
	for acks, told := range map[string]bool{"none": false, "leader": true, "all": true} {
		var place driver.Place
		f.send(t, f.producer(t, topic, map[string]any{"acks": acks, "partition": 2}), driver.Batch{{Body: []byte("x"), Place: &place}})
		if place.Partition != 2 || (place.Position.Form == driver.Offset) != told {
			t.Errorf("acks=%s: %+v", acks, place)
		}
	}
}

// A record keeps its own timestamp beside the time at which it came, be that one missing.
func TestTheTimestampIsTheRecords(t *testing.T) {
	for _, c := range []struct {
		of   time.Time
		want int64
	}{{time.UnixMilli(1_700_000_000_123), 1_700_000_000_123_000_000}, {time.UnixMilli(-1), 0}} {
		for name, stamp := range map[string]kgo.HookFetchRecordBuffered{"stamp": newStamp(0), "lender": &lender{}} {
			r := &kgo.Record{Timestamp: c.of, Partition: 3, Offset: 42}
			before := driver.Now()
			stamp.OnFetchRecordBuffered(r)
			var m driver.Message
			message(&m, r, nil)
			if m.Received < before || m.Received > driver.Now() {
				t.Errorf("%s: received at %d, after %d", name, m.Received, before)
			}
			if got, want := place(&m), (driver.Place{Partition: 3, Position: driver.At(42), Timestamp: c.want}); got != want {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
	}
	if got := place(&driver.Message{}); got != (driver.Place{}) {
		t.Errorf("no record: %+v", got)
	}
}
