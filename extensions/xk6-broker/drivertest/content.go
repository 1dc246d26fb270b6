package drivertest

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// echo sends messages one after the other and returns the messages received, in this order.
func (k *kit) echo(b driver.Batch) (got driver.Batch) {
	f := k.flow()
	for i := range b {
		f.p.send(b[i : i+1])
		got = append(got, f.r.finish(1)...)
	}
	return got
}

// allBytes returns a slice with each byte once.
func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func body(k *kit) {
	k.claims(!k.Numbers, "bodies of any bytes")
	b := driver.Batch{{Body: allBytes()}, {}}
	for _, text := range []string{"\r\n.\r\n\r\n", "\x00", "\xff\xfe", "+OK ÿ"} {
		b = append(b, driver.Message{Body: []byte(text)})
	}
	for i, m := range k.echo(b) {
		if !bytes.Equal(m.Body, b[i].Body) {
			k.Errorf("body %.40q came as %.40q", b[i].Body, m.Body)
		}
		if !k.f.Key && m.Key != nil {
			k.Errorf("a key %q came, and keys are not claimed", m.Key)
		}
	}
}

func tombstone(k *kit) {
	k.claims(k.f.Tombstones, "messages without a body")
	got := k.echo(driver.Batch{{Key: []byte("k"), Body: []byte{}}, {Key: []byte("k")}})
	if got[0].Body == nil || len(got[0].Body) > 0 || got[1].Body != nil {
		k.Errorf("an empty body came as %#v, and no body as %#v", got[0].Body, got[1].Body)
	}
}

// key sends keys to any broker, as scripts do. If keys are not kept they change nothing.
func key(k *kit) {
	b := k.messages("key", 3)
	b[0].Key, b[1].Key = []byte("order/42=a b"), []byte("0")
	for i, m := range k.echo(b) {
		want := b[i].Key
		if !k.f.Key {
			want = nil
		}
		if !bytes.Equal(m.Key, want) || !bytes.Equal(m.Body, b[i].Body) {
			k.Errorf("key %q of %q came as %q of %q", b[i].Key, b[i].Body, m.Key, m.Body)
		}
	}
}

func headers(k *kit) {
	k.echoHeaders([]driver.Header{
		{Name: "Mixed-Case", Value: []byte("text with spaces")},
		{Name: "empty", Value: nil},
		{Name: "long", Value: bytes.Repeat([]byte("x"), 200)},
		{Name: "trace-id", Value: []byte("a/b=c+d==")},
	})
}

func headerBytes(k *kit) {
	k.claims(k.f.Headers && k.HeaderBytes, "headers of any bytes")
	k.echoHeaders([]driver.Header{{Name: "bytes", Value: allBytes()}, {Name: "line", Value: []byte("a\r\nb: c")}})
}

// echoHeaders sends headers in the order of their names. Some brokers choose another order.
func (k *kit) echoHeaders(want []driver.Header) {
	b := driver.Batch{{Body: []byte("body"), Headers: want}}
	if !k.f.Headers {
		k.unsupported("headers", k.lone(k.URL).try(b))
		return
	}
	got := slices.Clone(k.echo(b)[0].Headers)
	slices.SortFunc(got, func(a, b driver.Header) int { return strings.Compare(a.Name, b.Name) })
	equal := func(a, b driver.Header) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }
	if !slices.EqualFunc(got, want, equal) {
		k.Errorf("headers %.200q came as %.200q", want, got)
	}
}

// partitionProperty is the option that chooses a message's partition.
const partitionProperty = "partition"

// properties sends a message with all properties that the driver has options for, and one without.
func properties(k *kit) {
	want := driver.Values{}
	for _, o := range k.d.Options {
		if o.Scope&driver.OnMessage != 0 && o.Name != partitionProperty && !o.SendOnly {
			want[o.Name] = example(o)
		}
	}
	k.claims(len(want) > 0, "properties of messages")
	got := k.echo(driver.Batch{{Body: []byte("with"), Properties: want}, {Body: []byte("without")}})
	if !reflect.DeepEqual(got[0].Properties, want) {
		k.Errorf("%v came as %v", want, got[0].Properties)
	}
	if len(got[1].Properties) > 0 {
		k.Errorf("a message without properties came with %v", got[1].Properties)
	}
}

// example returns a value of an option.
func example(o driver.Option) any {
	switch o.Type {
	case driver.Int, driver.Size:
		return max(o.Min, 3)
	case driver.Duration:
		return time.Hour
	case driver.Bool:
		return true
	case driver.Enum:
		return o.Allowed[len(o.Allowed)-1]
	case driver.List:
		return []string{"a", "b"}
	case driver.Map:
		return map[string]any{"a": "b", "c": int64(1), "d": true}
	case driver.Items:
		return []any{"a", "b"}
	}
	return "of the message"
}
