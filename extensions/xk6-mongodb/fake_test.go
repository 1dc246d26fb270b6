package mongodb_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// fake is a server that answers each command as a test says: with what the stand-in has none of, such as users, write concerns and members.
type fake struct {
	t        *testing.T
	listener net.Listener
	answer   func(command string, c bson.Raw) any // nil is the usual answer, hangUp none

	mu    sync.Mutex
	conns map[net.Conn]bool
	over  sync.WaitGroup
}

// hangUp is the answer that breaks the connection.
type hangUp struct{}

// answering starts a fake and gives its address.
func answering(t *testing.T, answer func(command string, c bson.Raw) any) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return answeringAt(t, l, answer)
}

func answeringAt(t *testing.T, l net.Listener, answer func(command string, c bson.Raw) any) string {
	t.Helper()
	f := &fake{t: t, listener: l, answer: answer, conns: map[net.Conn]bool{}}
	f.over.Go(f.accept)
	t.Cleanup(func() {
		_ = l.Close()
		f.mu.Lock()
		for c := range f.conns {
			_ = c.Close()
		}
		f.mu.Unlock()
		f.over.Wait()
	})
	return l.Addr().String()
}

func (f *fake) accept() {
	for {
		c, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.conns[c] = true
		f.mu.Unlock()
		f.over.Go(func() {
			f.serve(c)
			_ = c.Close()
		})
	}
}

const (
	opReply = 1
	opQuery = 2004
	opMsg   = 2013
)

func (f *fake) serve(c net.Conn) {
	var header [16]byte
	for {
		if _, err := io.ReadFull(c, header[:]); err != nil {
			return
		}
		rest := make([]byte, binary.LittleEndian.Uint32(header[:])-16)
		if _, err := io.ReadFull(c, rest); err != nil {
			return
		}
		var document, sequence bson.Raw
		silent := false
		code := binary.LittleEndian.Uint32(header[12:])
		switch code {
		case opQuery: // flags, the collection's name, two numbers
			at := 4
			for rest[at] != 0 {
				at++
			}
			document = rest[at+9:]
		case opMsg: // flags, and the section with the command, behind or before one with documents
			silent = rest[0]&2 != 0
			for at := 4; at < len(rest); {
				size := int(binary.LittleEndian.Uint32(rest[at+1:]))
				if rest[at] == 0 {
					document = rest[at+1 : at+1+size]
				} else {
					sequence = rest[at+5 : at+1+size]
				}
				at += 1 + size
			}
		default:
			f.t.Errorf("a message of code %d", code)
			return
		}
		document, command, err := whole(document, sequence)
		if err != nil {
			f.t.Errorf("a command that cannot be read: %v", err)
			return
		}
		answer := f.answer(command, document)
		if answer == (hangUp{}) {
			return
		}
		if answer == nil {
			answer = usual(command)
		}
		if !silent {
			f.reply(c, header[4:8], code, answer)
		}
	}
}

// whole is a command with the documents that came beside it, and its name.
func whole(document, sequence bson.Raw) (bson.Raw, string, error) {
	var c bson.D
	if err := bson.Unmarshal(document, &c); err != nil {
		return nil, "", err
	}
	if name, rest, ok := bytes.Cut(sequence, []byte{0}); ok {
		var all bson.A
		for len(rest) > 4 {
			size := binary.LittleEndian.Uint32(rest)
			all = append(all, bson.Raw(rest[:size]))
			rest = rest[size:]
		}
		c = append(c, bson.E{Key: string(name), Value: all})
	}
	document, err := bson.Marshal(c)
	return document, c[0].Key, err
}

func (f *fake) reply(c net.Conn, to []byte, code uint32, answer any) {
	document, err := bson.Marshal(answer)
	if err != nil {
		f.t.Error(err)
		return
	}
	m := make([]byte, 16, 64+len(document))
	copy(m[8:], to)
	if code == opQuery {
		binary.LittleEndian.PutUint32(m[12:], opReply)
		m = append(m, make([]byte, 16)...) // flags, cursor, offset
		m = binary.LittleEndian.AppendUint32(m, 1)
	} else {
		binary.LittleEndian.PutUint32(m[12:], opMsg)
		m = append(m, make([]byte, 5)...) // flags, the kind of the section
	}
	m = append(m, document...)
	binary.LittleEndian.PutUint32(m, uint32(len(m)))
	_, _ = c.Write(m)
}

// answers are documents.
type answers = map[string]any

// usual is what a standalone MongoDB says that has one topic, q, without messages.
func usual(command string) answers {
	list := func(all ...answers) answers {
		return answers{"ok": 1, "cursor": answers{"id": int64(0), "ns": "test.q", "firstBatch": append([]answers{}, all...)}}
	}
	switch command {
	case "hello", "isMaster", "ismaster":
		return hello(nil)
	case "buildInfo":
		return answers{"ok": 1, "version": "8.0.4", "gitVersion": "abc"}
	case "listCollections":
		return list(answers{"name": "q", "type": "collection", "options": answers{}})
	case "listIndexes":
		return list(answers{"name": "nextDelivery_1", "key": answers{"nextDelivery": int32(1)}, "v": 2})
	case "findAndModify":
		return answers{"ok": 1, "value": nil}
	case "find":
		return list()
	}
	return answers{"ok": 1, "n": 1, "nModified": 1}
}

// hello is how a server introduces itself.
func hello(more answers) answers {
	h := answers{
		"ok": 1, "ismaster": true, "isWritablePrimary": true, "maxBsonObjectSize": 16 << 20, "maxMessageSizeBytes": 48000000, "maxWriteBatchSize": 100000,
		"minWireVersion": 0, "maxWireVersion": 25, "helloOk": true,
	}
	for name, value := range more {
		h[name] = value
	}
	return h
}

func isHello(command string) bool {
	return command == "hello" || command == "isMaster" || command == "ismaster"
}

// refusal is how a server says no.
func refusal(code int, name, message string) answers {
	return answers{"ok": 0, "code": code, "codeName": name, "errmsg": message}
}
