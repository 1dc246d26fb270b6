//go:build linux

package account

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The folder of ledgers that a process is to merge whose memory is measured.
const mergesIn = "BROKER_TEST_LEDGERS"

// A merge has the sets of all ledgers in memory. Each message falls to any of ten processes by chance: the worst there is for what a
// ledger takes. BROKER_TEST_MESSAGES=100000000 is for ten times as many, which takes a minute.
func TestAMergeIsBoundedInMemory(t *testing.T) {
	const processes = 10
	messages := 10_000_000
	if dir := os.Getenv(mergesIn); dir != "" {
		mergeAll(t, dir, processes)
		return
	}
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	if n, err := strconv.Atoi(os.Getenv("BROKER_TEST_MESSAGES")); err == nil {
		messages = n
	}
	for _, producers := range []int{1, 100} { // of each process
		t.Run(fmt.Sprintf("%d producers", processes*producers), func(t *testing.T) {
			dir := t.TempDir()
			size := writeLedgers(t, dir, processes, producers, messages)
			began := time.Now()
			merging := exec.Command(os.Args[0], "-test.run=^"+t.Name()[:len("TestAMergeIsBoundedInMemory")]+"$")
			merging.Env = append(os.Environ(), mergesIn+"="+dir)
			out, err := merging.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var most int64 // the most that the process has had in memory, in KiB
			if _, after, ok := strings.Cut(string(out), "VmHWM:"); !ok {
				t.Fatalf("%s", out)
			} else if _, err := fmt.Sscan(after, &most); err != nil {
				t.Fatal(err)
			}
			most <<= 10
			t.Logf("%d messages: ledgers of %.1f bits a message, merged in %v with at most %d MiB",
				messages, float64(size)*8/float64(messages), time.Since(began).Round(time.Millisecond), most>>20)
			bound := int64(128<<20) + 8*size // the text, the sets, and what the garbage collector leaves
			if most > bound {
				t.Errorf("%d MiB, want at most %d", most>>20, bound>>20)
			}
		})
	}
}

// writeLedgers writes what processes know that together sent so many messages.
func writeLedgers(t *testing.T, dir string, processes, producers, messages int) (size int64) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 1)) // the same numbers each time is what it is for
	topics, readers := make([]*Topic, processes), make([]*Reader, processes)
	for i := range topics {
		topics[i] = NewTopic()
		readers[i] = topics[i].Group("workers", true).Reader()
	}
	for i, topic := range topics {
		for n := range producers {
			p := topic.Producer(uint64(i+1)<<32 | uint64(n))
			for range messages / processes / producers {
				seq := p.Next()
				p.Expect(seq)
				reader := readers[random.IntN(processes)]
				reader.Received(p.ID(), seq, 0, 1)
				if random.IntN(1000) > 0 {
					reader.Settled(p.ID(), seq)
				}
			}
		}
	}
	for i, topic := range topics {
		known := topic.Snapshot()
		l := &Ledger{Version: LedgerVersion, Instance: uint32(i + 1), Clock: "one", Topics: []TopicLedger{{
			Driver: "memory", Topic: "orders", Producers: known.Producers, Groups: []GroupLedger{{
				GroupSnapshot: known.Groups[0], Kept: true, Earliest: true, There: []Presence{{0, math.MaxInt64}}, Asked: 1e9,
			}},
		}}}
		file, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err == nil {
			err = l.Write(file)
		}
		if err != nil {
			t.Fatal(err)
		}
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return size
}

func mergeAll(t *testing.T, dir string, processes int) {
	t.Helper()
	var ledgers []*Ledger
	for i := range processes {
		file, err := os.Open(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		l, err := ReadLedger(file)
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		ledgers = append(ledgers, l)
	}
	whole := Compute(ledgers, Options{Complete: true})
	if a := whole.Topics[0].Groups[0]; a.Expected == 0 || a.Received != a.Expected || a.Missing != 0 || a.Settled >= a.Received {
		t.Errorf("%+v", a)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s\n", status)
}
