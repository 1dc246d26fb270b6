package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

const defaultPort = "4222"

// watcher is notified of events of the connection.
type watcher interface {
	lost(err error)                              // the connection broke
	regained()                                   // it is back
	failed(sub *nats.Subscription, reason error) // the client or the server complains; sub is nil where it names none
}

// conn is one connection to a server, of either driver.
type conn struct {
	nc     *nats.Conn
	dialer *dialer
	server *embeddedServer // nil where the server is not ours
	closed chan struct{}
	once   sync.Once             // for Close
	mute   atomic.Pointer[error] // why requests get no answers, if the server refuses their subscription

	mu       sync.Mutex
	watchers map[watcher]struct{}
}

// dial connects to the servers that t names, or to the embedded one.
func dial(ctx context.Context, t driver.Target) (*conn, error) {
	c := &conn{closed: make(chan struct{}), watchers: map[watcher]struct{}{}}
	options, err := c.options(t)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(t.URL.Scheme, "embedded") {
		if c.server, err = startEmbedded(); err != nil {
			return nil, err
		}
		t.Hosts = []string{c.server.address()}
	}
	if deadline, ok := ctx.Deadline(); ok {
		// An attempt that hangs in the handshake ends with ctx, too.
		options = append(
			options,
			nats.Timeout(max(min(time.Until(deadline), t.Options.Duration("connectTimeout")), time.Millisecond)),
		)
	}
	stop := context.AfterFunc(ctx, c.dialer.cut)
	c.nc, err = nats.Connect(strings.Join(t.Addresses(defaultPort), ","), options...)
	if !stop() && err == nil {
		c.nc.Close()
		err = ctx.Err()
	}
	if err != nil {
		err = c.explain(ctx, err)
		c.dialer.cut()
		c.server.stop()
		return nil, err
	}
	return c, nil
}

// explain adds the reason if nats.go only reports that no server answers.
func (c *conn) explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", err, ctx.Err())
	case errors.Is(err, nats.ErrNoServers) && c.dialer.lastError() != nil:
		return fmt.Errorf("%w: %w", err, c.dialer.lastError())
	}
	return err
}

// options returns nats.go's options. Buffering while disconnected and giving up are off, because
// they hide failures.
func (c *conn) options(t driver.Target) ([]nats.Option, error) {
	o := t.Options
	c.dialer = newDialer(t.Plain(), o.Duration("connectTimeout"))
	name := o.String("name")
	if name == "" {
		name = t.ClientName
	}
	options := []nats.Option{
		nats.Name(name),
		nats.SetCustomDialer(c.dialer),
		nats.Timeout(o.Duration("connectTimeout")),
		nats.PingInterval(o.Duration("pingInterval")),
		nats.FlusherTimeout(o.Duration("writeTimeout")),
		nats.ReconnectBufSize(-1),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(o.Duration("reconnectWait")),
		nats.ReconnectJitter(0, 0),
		nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err == nil {
				err = nats.ErrDisconnected
			}
			c.each(func(w watcher) { w.lost(err) })
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			c.mute.Store(nil)
			c.each(watcher.regained)
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			if denies(err, "Subscription", nats.InboxPrefix+anything) {
				c.mute.Store(&err)
			}
			c.each(func(w watcher) { w.failed(sub, err) })
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
	}
	if t.Network.Dial != nil {
		options = append(options, nats.SkipHostLookup()) // the dialer resolves names
	}
	if !o.Bool("randomize") {
		options = append(options, nats.DontRandomize())
	}
	credentials, err := credentials(t)
	if err != nil {
		return nil, err
	}
	secure, err := secure(t)
	if err != nil {
		return nil, err
	}
	return append(append(options, credentials...), secure...), nil
}

// credentials are not in the URL for nats.go, so that its errors cannot have them.
func credentials(t driver.Target) ([]nats.Option, error) {
	o := t.Options
	user, password := t.Login()
	token := o.String("token")
	if password == "" && o.String("user") == "" && user != "" { // alone in the URL
		user, token = "", user
	}
	var options []nats.Option
	if user != "" {
		options = append(options, nats.UserInfo(user, password))
	}
	if token != "" {
		options = append(options, nats.Token(token))
	}
	seed, err := t.File("nkey")
	if err != nil {
		return nil, err
	}
	if seed != "" {
		key, err := nkeys.ParseDecoratedNKey([]byte(seed))
		if err != nil {
			return nil, &driver.OptionError{Name: "nkey", Err: err}
		}
		public, err := key.PublicKey()
		if err != nil {
			return nil, &driver.OptionError{Name: "nkey", Err: err}
		}
		options = append(options, nats.Nkey(public, key.Sign))
	}
	creds, err := t.File("creds")
	if err != nil {
		return nil, err
	}
	if creds != "" {
		options = append(options, nats.UserCredentialBytes([]byte(creds)))
	}
	return options, nil
}

func secure(t driver.Target) ([]nats.Option, error) {
	config, err := t.TLS()
	if err != nil || config == nil {
		return nil, err
	}
	return []nats.Option{nats.Secure(config)}, nil
}

// Close implements [driver.Conn].
func (c *conn) Close(ctx context.Context) error {
	// Closing writes the buffer, which a server that does not read can hold up.
	stop := context.AfterFunc(ctx, c.dialer.cut)
	defer stop()
	c.once.Do(func() {
		c.nc.Close()
		<-c.closed
		c.dialer.cut()
		c.server.stop()
	})
	return nil
}

// Info implements [driver.Informer].
func (c *conn) Info() driver.Info {
	return driver.Info{
		Server:   "nats-server " + c.nc.ConnectedServerVersion(),
		Client:   "nats.go " + nats.Version,
		Nodes:    len(c.nc.Servers()),
		Embedded: c.server != nil,
	}
}

// As implements [driver.Unwrapper] for **nats.Conn.
func (c *conn) As(target any) bool {
	return driver.As(target, c.nc)
}

func (c *conn) watch(w watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers[w] = struct{}{}
}

func (c *conn) unwatch(w watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watchers, w)
}

func (c *conn) each(tell func(watcher)) {
	c.mu.Lock()
	watchers := make([]watcher, 0, len(c.watchers))
	for w := range c.watchers {
		watchers = append(watchers, w)
	}
	c.mu.Unlock()
	for _, w := range watchers {
		tell(w)
	}
}

// subscribed waits until the server has a subscription to subject, or has refused it.
func (c *conn) subscribed(ctx context.Context, subject string) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	if err := c.nc.FlushWithContext(ctx); err != nil {
		return err
	}
	// A refusal comes before the answer to the flush.
	if err := c.nc.LastError(); denies(err, "Subscription", subject) {
		return err
	}
	return nil
}

// denies reports whether err is the server's refusal of subject, which may end in [anything].
func denies(err error, verb, subject string) bool {
	subject, open := strings.CutSuffix(subject, anything)
	if !open {
		subject += `"`
	}
	return isRefusal(err) && strings.Contains(err.Error(), verb+` to "`+subject)
}

// anything is the last token of a subject that stands for all tokens.
const anything = ">"

func isRefusal(err error) bool { return errors.Is(err, nats.ErrPermissionViolation) }

// withDeadline adds a deadline to ctx if it has none, because nats.go requires one.
func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	const limit = time.Minute
	return context.WithTimeout(ctx, limit)
}
