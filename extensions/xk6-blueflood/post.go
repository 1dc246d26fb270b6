package blueflood

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// post sends a request and returns the answer's body. Answers other than 200 are errors.
func (c *conn) post(ctx context.Context, t *http.Transport, url string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.GetBody = nil // package http must not send it again
	r.Header.Set("Content-Type", "application/json")
	c.authorization(r)
	answer, err := t.RoundTrip(r)
	if err != nil {
		return nil, c.late(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("the answer: %w", c.late(ctx, err))
	}
	if answer.StatusCode != http.StatusOK {
		return nil, newAnswerError(answer.StatusCode, text)
	}
	return text, nil
}

// late names the option whose time was too short.
func (c *conn) late(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return fmt.Errorf("option \"timeout\": no answer within %v: %w", c.timeout, context.DeadlineExceeded)
	}
	return err
}
