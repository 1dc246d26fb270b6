package mongodb_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// The tests run on the MongoDB that BROKER_URL_MONGODB names. Where there is none they run on a stand-in, mongo-java-server, whose jars BROKER_MONGODB_STANDIN
// names the folder of: that is another implementation of the protocol, and what passes on it is not proven on MongoDB.

// standin is a server that is started when it is first asked for, once for all tests.
type standin struct {
	mode    string
	once    sync.Once
	stop    func()
	address string
	err     error
}

var plain, replicaSet = &standin{mode: "standalone"}, &standin{mode: "replicaSet"}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range []*standin{plain, replicaSet} {
		if s.stop != nil {
			s.stop()
		}
	}
	os.Exit(code)
}

// url is that of the server; empty where there is no stand-in.
func (s *standin) url(t testing.TB) string {
	t.Helper()
	jars := os.Getenv("BROKER_MONGODB_STANDIN")
	if jars == "" {
		return ""
	}
	s.once.Do(func() { s.run(jars) })
	if s.err != nil {
		t.Fatalf("the stand-in: %v", s.err)
	}
	return "mongodb://" + s.address + "?directConnection=true&timeout=2m" // a proxy in front of it is not gone round; it looks through all messages for each lease
}

func (s *standin) run(jars string) {
	c := exec.Command("java", "-Xmx512m", "-XX:+UseSerialGC", "-Dslf4j.internal.verbosity=ERROR", "-cp", jars+"/*", "testdata/standin/Standin.java", s.mode)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe() // which ends with this process, however that ends
	if err != nil {
		s.err = err
		return
	}
	out, err := c.StdoutPipe()
	if err != nil {
		s.err = err
		return
	}
	if s.err = c.Start(); s.err != nil {
		return
	}
	s.stop = func() {
		_ = in.Close()
		_ = c.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.err = fmt.Errorf("it said no address: %w", err)
	}
	s.address = strings.TrimSpace(line)
}

// givenURL is that of a MongoDB, else of the stand-in; empty where there is neither.
func givenURL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("BROKER_URL_MONGODB"); url != "" {
		return url
	}
	return replicaSet.url(t)
}
