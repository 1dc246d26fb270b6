package driver

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Protocol is the protocol of a driver's servers.
type Protocol struct {
	// Name is the name that users know, such as "AMQP 1.0" or "the protocol of Redis".
	Name string
	// Text has the beginnings of text answers, such as "INFO "; empty for a binary protocol. A
	// driver of HTTP finds foreign web servers itself.
	Text []string
}

// ProtocolError reports that a server speaks another protocol than the driver. Its kind is
// [Unsupported]. It does not unwrap, because a client may return any error for a foreign answer.
type ProtocolError struct {
	Protocol string // the driver's
	Err      error
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("the server does not speak %s at this port: %v", e.Protocol, e.Err)
}

// open opens a connection. If that fails, a probe of the first host may explain it with a
// [ProtocolError].
func (t Target) open(ctx context.Context, d *Driver) (Conn, error) {
	conn, err := d.Open(ctx, t)
	_, networked := d.Option("connectTimeout")
	if err == nil || !networked || len(t.Hosts) == 0 || ctx.Err() != nil {
		return conn, err
	}
	const timeout = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return nil, newProbe(t, d).explain(ctx, err, d.KindOf(err))
}

// probe asks a server, over connections of its own, whether it speaks the driver's protocol.
type probe struct {
	protocol Protocol
	host     string
	plain    Dial
	secure   *tls.Config // nil without TLS
}

func newProbe(t Target, d *Driver) *probe {
	secure, _ := t.TLS() // its error is that of Open
	p := &probe{protocol: d.Protocol, host: t.Hosts[0], plain: t.Plain(), secure: secure}
	p.protocol.Name = cmp.Or(p.protocol.Name, "the protocol of driver "+d.Name)
	return p
}

// explain returns a [ProtocolError] if opening failed because the server is foreign, else err.
func (p *probe) explain(ctx context.Context, err error, kind Kind) error {
	if p.secure != nil && errors.As(err, new(tls.RecordHeaderError)) {
		return &ProtocolError{"TLS", err}
	}
	var foreign *ProtocolError
	switch kind {
	case Rejected:
	case Unknown, Disconnected, Timeout:
		foreign = p.run(ctx)
	default:
		foreign = p.requiresTLS(ctx)
	}
	if foreign == nil {
		return err
	}
	return &ProtocolError{foreign.Protocol, fmt.Errorf("%w: %w", foreign.Err, err)}
}

// run returns an error if the server certainly speaks another protocol.
func (p *probe) run(ctx context.Context) *ProtocolError {
	answer, _ := p.ask(ctx, p.plain)
	if foreign := p.foreignText(answer); foreign != nil {
		return foreign
	}
	if p.secure == nil {
		return p.requiresTLS(ctx)
	}
	answer, err := p.ask(ctx, withTLS(p.plain, p.secure))
	if errors.As(err, new(tls.RecordHeaderError)) {
		return &ProtocolError{"TLS", err}
	}
	return p.foreignText(answer)
}

// requiresTLS returns an error if the options do not ask for TLS, and the server takes a handshake
// of TLS and hangs up on anything else.
func (p *probe) requiresTLS(ctx context.Context) *ProtocolError {
	if p.secure != nil || !p.speaksTLS(ctx) {
		return nil
	}
	const alert = 21 // the first byte of a TLS record for an error
	answer, err := p.ask(ctx, p.plain)
	alerted := len(answer) > 0 && answer[0] == alert
	hungUp := len(answer) == 0 && err != nil && ctx.Err() == nil
	if !alerted && !hungUp {
		return nil
	}
	return &ProtocolError{p.protocol.Name, errors.New(`it requires TLS, so set option "tls"`)}
}

// foreignText returns an error with the first line of an answer if that is text of another
// protocol.
func (p *probe) foreignText(answer []byte) *ProtocolError {
	first, _, _ := bytes.Cut(answer, []byte("\n"))
	line := strings.TrimRight(string(first), "\r")
	binary := strings.ContainsFunc(line, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) })
	own := slices.ContainsFunc(p.protocol.Text, func(begin string) bool { return strings.HasPrefix(line, begin) })
	if line == "" || binary || own {
		return nil
	}
	return &ProtocolError{p.protocol.Name, fmt.Errorf("it answers %q", line)}
}

// ask returns the first line that a server sends by itself, or after a line that is of no protocol.
// It returns an error if the server hangs up before that.
func (p *probe) ask(ctx context.Context, dial Dial) ([]byte, error) {
	c, err := dial(ctx, "tcp", p.host)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	_, _ = io.WriteString(c, "WHO ARE YOU?\r\n\r\n") // a server that greets may have hung up already
	return bufio.NewReaderSize(c, 128).ReadSlice('\n')
}

// speaksTLS reports whether the server answers a handshake of TLS.
func (p *probe) speaksTLS(ctx context.Context) bool {
	anyServer := &tls.Config{InsecureSkipVerify: true} //gosec:disable G402 -- nothing is sent to the server
	c, err := withTLS(p.plain, anyServer)(ctx, "tcp", p.host)
	if err == nil {
		_ = c.Close()
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" // an alert
}
