package k6

import (
	"fmt"
	"testing"
)

// BenchmarkSend is what a send costs beside the broker: one that confirms at once.
func BenchmarkSend(b *testing.B) {
	for name, message := range map[string]string{
		"string":      "{ body: 'x'.repeat(100) }",
		"typed array": "new Uint8Array(100)",
		"JSON":        "{ body: { a: 1 } }",
		"headers":     "{ body: 'x', headers: { a: 'b', c: 'd' } }",
	} {
		b.Run(name, func(b *testing.B) {
			s := newScript(b).begin()
			s.mustRun("globalThis.p = broker.connect('discard://h').producer('t'); await p.ready(); globalThis.m = " + message)
			b.ReportAllocs()
			b.ResetTimer()
			const batch = 100
			for n := 0; n < b.N; n += batch {
				s.mustRun(fmt.Sprintf("for (let i = 0; i < %d; i++) await p.send(m)", min(batch, b.N-n)))
			}
		})
	}
}
