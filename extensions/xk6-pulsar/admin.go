package pulsar

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// admin is a client of the admin API over HTTP.
type admin struct {
	base   string
	client *http.Client
	sign   func(*http.Request) error
}

func newAdmin(base string, secure *tls.Config, login credentials, timeout time.Duration) (*admin, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, &driver.OptionError{Name: "adminUrl", Err: errors.New("it should look like http://127.0.0.1:8080")}
	}
	// Requests are rare, and a kept connection would have to be closed.
	transport := &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true}
	return &admin{base, &http.Client{Transport: transport, Timeout: timeout}, login.sign}, nil
}

// call makes a request and reads the answer into answer, unless it is nil.
func (a *admin) call(ctx context.Context, method, path string, body, answer any) error {
	var sent io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, a.base+path, sent)
	if err != nil {
		return err
	}
	if body != nil || method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if err := a.sign(r); err != nil {
		return err
	}
	response, err := a.client.Do(r)
	if err != nil {
		return fmt.Errorf("admin API: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	const most = 16 << 20
	text, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return fmt.Errorf("admin API: %w", err)
	}
	if response.StatusCode/100 != 2 {
		return refusalOf(response, text)
	}
	if answer == nil {
		return nil
	}
	if plain, ok := answer.(*string); ok {
		*plain = string(bytes.TrimSpace(text))
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("admin API: %s %s: %w", method, path, err)
	}
	return nil
}

// refusalOf returns the error of a status other than success, with the broker's reason.
func refusalOf(r *http.Response, text []byte) error {
	var body struct {
		Reason string `json:"reason"`
	}
	reason := r.Status
	if json.Unmarshal(text, &body) == nil && body.Reason != "" {
		reason, _, _ = strings.Cut(body.Reason, "\n")
	}
	return &statusError{code: r.StatusCode, reason: reason}
}

func (a *admin) version(ctx context.Context) (version string, err error) {
	err = a.call(ctx, http.MethodGet, "/admin/v2/brokers/version", nil, &version)
	return version, err
}

// brokers returns the number of brokers; 0 if not known.
func (a *admin) brokers(ctx context.Context) int {
	var all []string
	if a.call(ctx, http.MethodGet, "/admin/v2/brokers", nil, &all) != nil {
		return 0
	}
	return len(all)
}

// quorums are the copies of a topic's messages.
type quorums struct {
	Ensemble int `json:"bookkeeperEnsemble"`
	Write    int `json:"bookkeeperWriteQuorum"`
	Ack      int `json:"bookkeeperAckQuorum"`
}

// persistence returns the quorums of a topic, by its policy, its namespace's or the broker's.
func (a *admin) persistence(ctx context.Context, t topicName) (q quorums, err error) {
	err = a.call(ctx, http.MethodGet, t.path()+"/persistence?applied=true", nil, &q)
	return q, err
}

// partitions returns the number of partitions; 0 if the topic is not partitioned.
func (a *admin) partitions(ctx context.Context, t topicName) (int, error) {
	var answer struct {
		Partitions int `json:"partitions"`
	}
	err := a.call(ctx, http.MethodGet, t.path()+"/partitions", nil, &answer)
	return answer.Partitions, err
}
