// Package proxy is a TCP proxy that breaks, refuses or freezes connections, to test clients.
package proxy

import (
	"context"
	"net"
	"sync"
	"time"
)

// Proxy stands in front of one server. Its methods may be called concurrently.
type Proxy struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu     sync.Mutex
	conns  []net.Conn // all so far
	refuse bool
	frozen bool
	thawed *sync.Cond
}

// Listen starts a proxy on a free port of the loopback interface, in front of target, a host:port.
func Listen(target string) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, target: target}
	p.thawed = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	return p, nil
}

// Addr returns the host:port to connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut breaks every connection with a reset, as a crash does. Bytes in flight are lost.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // makes Close send a reset
		}
		_ = c.Close()
	}
}

// Refuse sets whether new connections are broken at once. Open connections stay.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// Freeze stops the bytes in both directions and keeps the connections, as a server that hangs does.
// New connections are accepted.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

// Thaw lets the bytes flow again. None was lost.
func (p *Proxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = false
	p.thawed.Broadcast()
}

// Close breaks every connection, stops listening and waits for the proxy's goroutines.
func (p *Proxy) Close() error {
	p.Refuse(true)
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
	if !p.add(client) {
		return
	}
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", p.target)
	if err != nil || !p.add(server) {
		_ = client.Close()
		return
	}
	p.running.Go(func() { p.pipe(server, client) })
	p.pipe(client, server)
}

// pipe copies until from ends, then closes both. Clients of brokers half-close no connection.
func (p *Proxy) pipe(to, from net.Conn) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.waitThawed()
		if _, werr := to.Write(buffer[:n]); err != nil || werr != nil {
			return
		}
	}
}

func (p *Proxy) waitThawed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.frozen {
		p.thawed.Wait()
	}
}

// add keeps a connection for Cut, or breaks it and returns false if it is refused.
func (p *Proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse {
		_ = c.Close()
		return false
	}
	p.conns = append(p.conns, c)
	return true
}
