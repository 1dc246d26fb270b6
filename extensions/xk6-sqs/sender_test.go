package sqs

import (
	"io"
	"net/http"
	"strings"
	"testing"

	smithy "github.com/aws/smithy-go/transport/http"
)

// late is a transport that has yet to look for the end of the body when it has the answer.
type late struct{ body io.ReadCloser }

func (l *late) RoundTrip(r *http.Request) (*http.Response, error) {
	l.body = r.Body
	if _, err := io.CopyN(io.Discard, r.Body, r.ContentLength); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// TestABodyThatIsClosedWithTheAnswer is what the client library does.
func TestABodyThatIsClosedWithTheAnswer(t *testing.T) {
	l := &late{}
	made := smithy.NewStackRequest().(*smithy.Request)
	made.ContentLength = 4
	made, err := made.SetStream(strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	made.Method, made.URL.Scheme, made.URL.Host = http.MethodPost, "http", "127.0.0.1"
	if _, _, err := smithy.NewClientHandlerWithOptions(&sender{http.Client{Transport: l}}).Handle(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, l.body); n != 0 || err != nil {
		t.Errorf("package http looks for the body's end, and finds %d bytes and %v", n, err)
	}
}
