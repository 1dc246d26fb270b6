package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// pieces are the parts of a password that nobody may see: three bytes of it are too many.
func pieces(password string) (all []string) {
	for i := range len(password) - 2 {
		all = append(all, password[i:i+3])
	}
	return all
}

// passwords have each special character at the start, in the middle and at the end. Some look like ports.
func passwords() (all []string) {
	specials := []string{"", "\x00", "\n", "\x7f", "é", "\xff", "%zz", "%2", "?a="}
	for c := byte(' '); c <= '~'; c++ {
		if !('0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') {
			specials = append(specials, string(c))
		}
	}
	for _, c := range specials {
		all = append(all, c+"Zq9Xw7", "Zq9"+c+"Xw7", "Zq9Xw7"+c)
		if strings.ContainsAny(c, "/?#@:&,%") {
			all = append(all, c+"738591", "738"+c+"591", "738591"+c)
		}
	}
	return all
}

// hides fails the test where a text shows a piece of the password.
func hides(t *testing.T, how, password, text string) {
	t.Helper()
	for _, piece := range pieces(password) {
		if strings.Contains(text, piece) && piece != "?a=" && piece != "%25" { // which are no secrets
			t.Errorf("%q shows %q of the password: %s", how, piece, text)
			return
		}
	}
}

// Whatever a password holds, and wherever it stands in a URL, nothing that this module says of it shows more than two bytes of it.
func TestNoPartOfAPasswordIsShown(t *testing.T) {
	for _, d := range driver.Drivers() {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			for _, scheme := range d.Schemes {
				for _, password := range passwords() {
					noPartIsShown(t, d, scheme, password)
				}
			}
		})
	}
}

func noPartIsShown(t *testing.T, d *driver.Driver, scheme, password string) {
	t.Helper()
	look := func(raw string, given map[string]any) error {
		t.Helper()
		a, err := driver.ParseURL(raw, given)
		if err != nil {
			hides(t, raw, password, err.Error())
			return err
		}
		shown := a.String()
		for _, scope := range []driver.Scope{driver.OnConnect, driver.OnProducer, driver.OnConsumer, driver.OnTopic} {
			values, err := a.Resolve(scope, nil)
			if err != nil {
				t.Fatal(err)
			}
			shown += fmt.Sprint(d.Redact(values))
		}
		hides(t, raw, password, shown)
		return nil
	}
	for _, form := range []string{
		"%s://u:%s@127.0.0.1:1", "%s://%s@127.0.0.1:1", "%s://%s:p@127.0.0.1:1", "%s://u:%s@127.0.0.1:1,127.0.0.1:2/path?profile=durable",
		"%s:u:%s@127.0.0.1:1", "%s:%s@127.0.0.1:1", "%s:/u:%s@127.0.0.1:1", "%s:///u:%s@127.0.0.1:1", "%s://u:%s@", "%s://u:%s@127.0.0.1:1?colour=red",
		"%s://127.0.0.1:1?password=%s", "%s://127.0.0.1:1?token=%s", "%s://u@127.0.0.1:1?password=%s&name=x",
	} {
		_ = look(fmt.Sprintf(form, scheme, password), nil) // refused or not
	}
	encoded := url.URL{Scheme: scheme, User: url.UserPassword("u", password), Host: "127.0.0.1:1"}
	if err := look(encoded.String(), nil); err != nil {
		t.Errorf("%s: %v; a password in percent-encoding is right", &encoded, err)
	}
	_ = look(scheme+"://127.0.0.1:1?"+url.Values{"password": {password}}.Encode(), nil)
	_ = look(scheme+"://127.0.0.1:1?"+url.Values{"password": {password, password}}.Encode(), nil)
	_ = look(scheme+"://127.0.0.1:1", map[string]any{"password": []any{password}})
	_ = look(scheme+"://127.0.0.1:1", map[string]any{"password": password, "token": 7})
}

// talkback is a server that says what it was told, each line behind a prefix, as servers do that complain of what they did not
// understand.
func talkback(t *testing.T, prefix string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_ = c.SetDeadline(time.Now().Add(10 * time.Second))
				in := bufio.NewReader(c)
				for {
					told := make([]byte, 4096)
					n, err := in.Read(told)
					if err != nil {
						return
					}
					told = told[:n]
					if prefix != "" {
						told = []byte(prefix + strings.NewReplacer("\r", " ", "\n", " ").Replace(string(told)) + "\r\n")
					}
					if _, err := c.Write(told); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// Nor does an error of a connection that fails, be it refused or answered with an echo of what was sent.
func TestNoPartOfAPasswordIsInAConnectionsError(t *testing.T) {
	servers := map[string]string{
		"nobody": "127.0.0.1:1",
		"mirror": talkback(t, ""),
		"redis":  talkback(t, "-ERR unknown command 'AUTH', with args beginning with: "),
	}
	const password = "Zq9/@:#?%&Xw7"
	for _, d := range driver.Drivers() {
		for name, host := range servers {
			t.Run(d.Name+" "+name, func(t *testing.T) {
				t.Parallel()
				u := url.URL{Scheme: d.Schemes[0], User: url.UserPassword("u", password), Host: host}
				a, err := driver.ParseURL(u.String(), nil)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				c, err := a.Open(ctx, "test")
				if err == nil {
					_ = c.Close(ctx)
					t.Fatal("it was opened")
				}
				hides(t, u.String(), password, err.Error())
				hides(t, u.String(), password, fmt.Sprintf("%+v %#v", err, err))
			})
		}
	}
}
