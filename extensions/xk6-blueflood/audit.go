package blueflood

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

const (
	askedMetrics = 100    // of one request, the server's limit
	askedPoints  = 20_000 // of one request, about
	again        = 200 * time.Millisecond
)

var errStoreAway = errors.New("the store does not return a new point, so the stored points are not known")

// Audit reads back the confirmed points. While Cassandra is away, and for some time after, the
// query service returns no points, so its answers count only between two new points that it
// returns.
func (p *producer) Audit(ctx context.Context) (driver.Audit, error) {
	j := p.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	audit := driver.Audit{Confirmed: uint64(j.all)} //gosec:disable G115 -- a count, far below the limit
	if j.all == 0 || !p.readBack {
		return driver.Audit{}, nil
	}
	if age := time.Since(time.UnixMilli(j.first)); age > p.form.ttl {
		err := fmt.Errorf("the first point is %v old and expired after %v", age.Truncate(time.Second), p.form.ttl)
		return audit, &driver.OptionError{Name: "ttl", Err: err}
	}
	err := p.waitForStore(ctx)
	var missing int64
	if err == nil {
		missing, err = p.missing(ctx)
	}
	if err == nil {
		err = p.waitForStore(ctx)
	}
	if err != nil {
		return audit, fmt.Errorf("reading back: %w", err)
	}
	audit.Missing = uint64(missing)
	return audit, nil
}

// waitForStore returns once the store returns a new point. The point has a new metric, because the
// server may confirm points of a metric that it has seen without storing them.
func (p *producer) waitForStore(ctx context.Context) error {
	last := error(nil)
	for {
		at := time.Now().UnixMilli()
		name := p.form.prefix + "audit." + fmt.Sprint(time.Now().UnixNano())
		err := p.canary(ctx, name, at)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return errors.Join(last, ctx.Err())
		}
	}
}

func (p *producer) canary(ctx context.Context, name string, at int64) error {
	if _, err := p.conn.post(ctx, p.conn.own, p.conn.ingest, p.form.alone(name, at)); err != nil {
		return err
	}
	found, err := p.conn.view(ctx, []string{name}, at, at+1)
	if err == nil && len(found[name]) == 0 {
		err = errStoreAway
	}
	return err
}

// missing counts the confirmed points that are not stored.
func (p *producer) missing(ctx context.Context) (missing int64, err error) {
	j := p.journal
	for first := 0; first < len(j.confirmed); first += askedMetrics {
		metrics := j.confirmed[first:min(first+askedMetrics, len(j.confirmed))]
		names, expected := make([]string, 0, len(metrics)), int64(0)
		for i, n := range metrics {
			if n > 0 {
				names = append(names, p.form.metric(first+i))
				expected += n
			}
		}
		if expected == 0 {
			continue
		}
		found := make([]int64, len(metrics))
		span := max(1, (j.last-j.first+1)*askedPoints/expected) // in ms
		for from := j.first; from <= j.last; from += span {
			views, err := p.conn.view(ctx, names, from, min(from+span-1, j.last))
			if err != nil {
				return 0, err
			}
			for i := range metrics {
				found[i] += j.among(first+i, views[p.form.metric(first+i)])
			}
		}
		for i, n := range metrics {
			missing += max(0, n-found[i])
		}
	}
	return missing, nil
}

// view returns the times of stored points of some metrics from from to to, in ms since the Unix
// epoch.
func (c *conn) view(ctx context.Context, metrics []string, from, to int64) (map[string][]int64, error) {
	body, err := json.Marshal(metrics)
	if err != nil {
		return nil, err
	}
	// The server needs an end after the beginning: a point of a further millisecond is left out
	// below.
	url := fmt.Sprintf("%s?from=%d&to=%d&resolution=FULL", c.views, from, max(to, from+1))
	text, err := c.post(ctx, c.own, url, body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Metrics []struct {
			Metric string
			Data   []struct{ Timestamp int64 }
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("the query service's answer: %w", err)
	}
	found := map[string][]int64{}
	for _, m := range answer.Metrics {
		for _, point := range m.Data {
			if point.Timestamp >= from && point.Timestamp <= to {
				found[m.Metric] = append(found[m.Metric], point.Timestamp)
			}
		}
	}
	return found, nil
}

var _ driver.Auditor = &producer{}
