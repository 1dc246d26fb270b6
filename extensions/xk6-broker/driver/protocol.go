package driver

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Protocol is what a driver's servers speak.
type Protocol struct {
	// Name is what its users call it, such as "AMQP 1.0" or "the protocol of Redis".
	Name string
	// Text is how answers begin that are text, such as "INFO "; none where the protocol is binary.
	// A driver whose servers speak HTTP, as web servers of all kinds do, tells by itself those that
	// are none of its own.
	Text []string
}

// ProtocolError is that what answers at a port speaks another protocol than the driver does; its
// kind is [Unsupported]. It unwraps to nothing: what a client makes of such an answer may be
// anything, the end of a context too.
type ProtocolError struct {
	Protocol string // the driver's
	Err      error
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("the server does not speak %s at this port: %v", e.Protocol, e.Err)
}

// soon is how long opening may take before the server is probed.
const soon = time.Second

// explainTimeout bounds the probe of a server after opening failed, within connectTimeout.
const explainTimeout = 5 * time.Second

// asking holds a token while one of those that wait for an answer asks: a server that is slow
// because many connect is not asked by all of them at once.
var asking = make(chan struct{}, 1)

// open opens a connection, and says of one that fails what answers at the port, where that is why.
// Some clients, and some who are no servers of theirs, wait for one another's first word: so the
// only host of a URL is asked meanwhile where it does not answer soon.
func (t Target) open(ctx context.Context, d *Driver) (Conn, error) {
	if _, networked := d.Option("connectTimeout"); !networked || len(t.Hosts) == 0 {
		return d.Open(ctx, t)
	}
	t.protocol = d.Protocol
	t.protocol.Name = cmp.Or(t.protocol.Name, "what driver "+d.Name+" does")
	within := time.Now().Add(t.Options.Duration("connectTimeout"))
	opening, giveUp := context.WithCancelCause(ctx)
	var asked sync.WaitGroup
	defer asked.Wait()
	defer giveUp(nil)
	if len(t.Hosts) == 1 {
		same := t
		same.Options = maps.Clone(t.Options) // those of the driver are its own to change
		asked.Go(func() { same.meanwhile(opening, giveUp) })
	}
	conn, err := d.Open(opening, t)
	if stranger := (*ProtocolError)(nil); err != nil && errors.As(context.Cause(opening), &stranger) {
		return nil, stranger
	}
	if err != nil && ctx.Err() == nil && !errors.As(err, new(*OptionError)) {
		asking, cancel := context.WithDeadline(ctx, within)
		defer cancel()
		err = t.explain(asking, err, d.KindOf(err))
	}
	return conn, err
}

// meanwhile gives up opening where it lasts, and who is there is a stranger.
func (t Target) meanwhile(opening context.Context, giveUp context.CancelCauseFunc) {
	select {
	case <-time.After(soon):
	case <-opening.Done():
		return
	}
	select {
	case asking <- struct{}{}:
		defer func() { <-asking }()
	case <-opening.Done():
		return
	}
	if is := t.strange(opening); is != nil {
		giveUp(&ProtocolError{t.protocol.Name, is})
	} else if secure, err := t.TLS(); err == nil && secure == nil && t.wantsTLS(opening) {
		giveUp(&ProtocolError{t.protocol.Name, errors.New(setTLS)})
	}
}

// explain adds to a connection's failure what the port speaks, if that is the reason: clients call
// it by many names, or by none. Opening that timed out is not explained, because meanwhile has
// asked already.
func (t Target) explain(ctx context.Context, err error, kind Kind) error {
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	switch kind {
	case Unknown, Disconnected:
		if is := t.strange(ctx); is != nil {
			return &ProtocolError{t.protocol.Name, fmt.Errorf("%w: %w", is, err)}
		}
	}
	return t.mismatch(ctx, err, kind)
}

// strange asks the first host what it is, by connections of its own. The error quotes what it says,
// where that is text and none of the driver's protocol.
func (t Target) strange(ctx context.Context) error {
	dials := []Dial{t.Plain()}
	if secure, err := t.TLS(); err == nil && secure != nil {
		if dial, err := t.Dialer(); err == nil {
			dials = append(dials, dial)
		}
	}
	for _, dial := range dials {
		line := greeting(ctx, dial, t.Hosts[0])
		if line != "" && !slices.ContainsFunc(t.protocol.Text, func(own string) bool { return strings.HasPrefix(line, own) }) {
			return fmt.Errorf("it says %q", line)
		}
	}
	return nil
}

// greeting is the first line of what a server says; empty where that is no text.
func greeting(ctx context.Context, dial Dial, address string) string {
	said, _ := answer(ctx, dial, address)
	line, _, _ := bytes.Cut(said, []byte("\n"))
	text := strings.TrimRight(string(line), "\r")
	if strings.ContainsFunc(text, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return ""
	}
	return text
}

// answer is how a server begins what it says by itself or to a line that is none of its protocol,
// as web servers do, up to the end of its first line. There is an error where it hangs up before
// that, or has nothing to say.
func answer(ctx context.Context, dial Dial, address string) ([]byte, error) {
	c, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	_, _ = io.WriteString(c, "WHO ARE YOU?\r\n\r\n") // who has spoken may have hung up since
	return bufio.NewReaderSize(c, 128).ReadSlice('\n')
}
