// Package proxy is a TCP proxy that breaks connections, refuses them, keeps them open and silent, lets no more than so many bytes through, or takes its time over
// them, so that a test can see what a client makes of it.
package proxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// Proxy stands in front of one server. Its methods may be called concurrently.
type Proxy struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	refuse  bool
	closed  bool
	flowing chan struct{} // closed while bytes flow
	limit   float64       // bytes a second towards the target, of all connections; 0 is none
	busy    time.Time     // until when the bytes that were let through take, at that limit
	delay   time.Duration // of the connections that are made from now on
}

// Listen starts a proxy on a free port of the loopback interface, in front of target, a host:port.
func Listen(target string) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, target: target, conns: map[net.Conn]struct{}{}, flowing: make(chan struct{})}
	close(p.flowing)
	p.running.Go(p.accept)
	return p, nil
}

// Addr is the host:port to connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut breaks every connection with a reset, as a crash of the server would; bytes on their way are lost.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // makes Close send a reset
		}
		_ = c.Close()
	}
}

// Refuse has new connections broken as soon as they are made, or no longer. Existing ones stay.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// Freeze stops the bytes in both directions and keeps the connections, as a server that hangs would. New connections
// are accepted and silent.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flowing:
		p.flowing = make(chan struct{})
	default: // frozen already
	}
}

// Thaw lets the bytes flow again; none was lost.
func (p *Proxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flowing:
	default:
		close(p.flowing)
	}
}

// Burst is for how long a limited link may make up for what it did not carry: else a proxy that wakes late would carry less than its limit.
const Burst = 50 * time.Millisecond

// Limit lets no more than so many bytes a second through towards the target, all connections together, as a narrow link would; 0 lifts the limit.
func (p *Proxy) Limit(bytesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = float64(bytesPerSecond)
}

// Delay has all bytes arrive so much later, in both directions, as over a long link, on the connections that are made from now on.
func (p *Proxy) Delay(each time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = each
}

// Close breaks every connection, stops listening and waits until nothing of the proxy runs any more.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Cut()
	p.Thaw()
	p.running.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(c) })
	}
}

// serve carries one connection until either side ends it.
func (p *Proxy) serve(client net.Conn) {
	if !p.own(client) {
		return
	}
	defer p.disown(client)
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", p.target)
	if err != nil || !p.own(server) {
		return
	}
	defer p.disown(server)
	var upstream sync.WaitGroup
	upstream.Go(func() { p.pipe(server, client, p.pass) })
	p.pipe(client, server, func(int) {})
	upstream.Wait()
}

// pipe copies until from ends, then closes both: a half-closed connection is nothing that a broker's client uses.
func (p *Proxy) pipe(to, from net.Conn, pass func(n int)) {
	defer func() { _ = to.Close(); _ = from.Close() }()
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	write := func(b []byte) error { return p.write(to, b) }
	if delay > 0 {
		later, finish := p.later(delay, write)
		defer finish()
		write = later
	}
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		pass(n)
		if werr := write(buffer[:n]); err != nil || werr != nil {
			return
		}
	}
}

// write writes once bytes flow.
func (p *Proxy) write(to net.Conn, b []byte) error {
	p.mu.Lock()
	flowing := p.flowing
	p.mu.Unlock()
	<-flowing
	_, err := to.Write(b)
	return err
}

// later gives a write that is done after a time, in the order of the calls; finish waits for those that are still to come. After one has failed none is done.
func (p *Proxy) later(delay time.Duration, write func([]byte) error) (put func([]byte) error, finish func()) {
	type chunk struct {
		bytes []byte
		due   time.Time
	}
	const most = 1 << 16 // as many as a link holds, in pieces of what is read at once
	var writing sync.WaitGroup
	link, failed := make(chan chunk, most), make(chan struct{})
	writing.Go(func() {
		defer close(failed)
		for c := range link {
			time.Sleep(time.Until(c.due))
			if write(c.bytes) != nil {
				return
			}
		}
	})
	put = func(b []byte) error {
		select {
		case link <- chunk{bytes.Clone(b), time.Now().Add(delay)}:
			return nil
		case <-failed:
			return net.ErrClosed
		}
	}
	return put, func() {
		close(link)
		writing.Wait()
	}
}

// pass waits until n bytes have gone through at the limit.
func (p *Proxy) pass(n int) {
	p.mu.Lock()
	if p.limit == 0 {
		p.mu.Unlock()
		return
	}
	if idle := time.Now().Add(-Burst); p.busy.Before(idle) {
		p.busy = idle
	}
	p.busy = p.busy.Add(time.Duration(float64(n) / p.limit * float64(time.Second)))
	until := p.busy
	p.mu.Unlock()
	time.Sleep(time.Until(until))
}

// own keeps a connection for Cut, or breaks it where there shall be none.
func (p *Proxy) own(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse || p.closed {
		_ = c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) disown(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

var _ io.Closer = (*Proxy)(nil)
