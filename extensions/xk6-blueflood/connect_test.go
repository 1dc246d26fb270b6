package blueflood_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func TestTenant(t *testing.T) {
	f := newFake(t)
	for _, path := range []string{"", "/", "/a/b"} {
		if _, _, err := open(t, strings.Replace(f.url, "/tenant", path, 1), nil); kindOf(t, err) != driver.Rejected || !strings.Contains(fmt.Sprint(err), `option "tenant"`) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, _, err := open(t, f.url, map[string]any{"queryAddress": "host"}); kindOf(t, err) != driver.Rejected || !strings.Contains(fmt.Sprint(err), `option "queryAddress"`) {
		t.Errorf("%v", err)
	}
}

func TestDenied(t *testing.T) {
	for _, with := range []string{"user:5ecret@", "token"} {
		asked := make(chan http.Header, 1)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.Header
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, "who are you?")
		}))
		t.Cleanup(s.Close)
		url := "blueflood://" + strings.TrimPrefix(s.URL, "http://") + "/tenant"
		if with == "token" {
			url += "?token=5ecret"
		} else {
			url = strings.Replace(url, "://", "://"+with, 1)
		}
		_, _, err := open(t, url, nil)
		if kindOf(t, err) != driver.Denied || strings.Contains(fmt.Sprint(err), "5ecret") {
			t.Errorf("%s: %v", with, err)
		}
		if head := <-asked; head.Get("Authorization") == "" && head.Get("X-Auth-Token") != "5ecret" {
			t.Errorf("%s: the server was told nothing: %v", with, head)
		}
	}
}

// TestGlad has a web server at the port that takes whatever it is sent.
func TestGlad(t *testing.T) {
	glad := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(glad.Close)
	_, _, err := open(t, "blueflood://"+strings.TrimPrefix(glad.URL, "http://")+"/tenant", nil)
	if kindOf(t, err) != driver.Unsupported {
		t.Errorf("kind %s: %v", kindOf(t, err), err)
	}
}

// TestNoAnswer is given up by the option timeout.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) == "[]" {
			refuse(w, http.StatusBadRequest, `{"message":"No valid metrics"}`)
			return
		}
		<-over
	}))
	t.Cleanup(s.Close)
	defer close(over)
	p, _ := producer(t, "blueflood://"+strings.TrimPrefix(s.URL, "http://")+"/tenant", map[string]any{"timeout": "1s"})
	err := send(t, p, numbers(1))[0]
	if kindOf(t, err) != driver.Timeout || !strings.Contains(fmt.Sprint(err), `option "timeout"`) {
		t.Errorf("kind %q: %v", kindOf(t, err), err)
	}
}
