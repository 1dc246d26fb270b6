package sqs

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// sender sends copies of the requests' bodies. The client library closes its bodies when an answer
// begins; package http may then fail to write, close the connection, and lose the messages in the
// answer until their visibility timeout.
type sender struct{ http.Client }

// Do sends a request.
func (s *sender) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("the request's body: %w", err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return s.Client.Do(r) //gosec:disable G704 -- the endpoint that the user names
}
