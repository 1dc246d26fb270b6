package sqs

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// sender sends requests whose bodies are its own. The client library closes those that it makes as soon as the answer's head is there; a goroutine of
// package http that has yet to look whether there is more of one takes that for a failure to write, and closes the connection under the answer: messages
// that were on their way would be nobody's until their visibility time-out is over.
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
