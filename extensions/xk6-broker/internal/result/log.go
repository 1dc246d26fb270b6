package result

import (
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// WriteLog writes the distributions of a topic's trend in each interval in the format .hlog. A tag says "closed" of what was
// measured of a closed loop, and names the group if the topic has several: "audit", "closed:audit".
func (r *Result) WriteLog(w io.Writer, t *Topic, trend recording.Trend) error {
	log, err := hist.NewLog(w, r.Started)
	if err != nil {
		return err
	}
	at := func(seconds float64) time.Time { return r.Started.Add(time.Duration(seconds * float64(time.Second))) }
	for _, c := range r.cells() {
		tagged := map[string]*hist.Histogram{}
		for _, i := range c.intervals {
			records := t.in(i)
			for k := range records {
				for l := range records[k].Latencies {
					if h := records[k].Latencies[l][trend]; !h.Empty() {
						tag := t.tag(recording.Loop(l), trend, records[k].Group) //gosec:disable G115 -- an index
						if tagged[tag] == nil {
							tagged[tag] = &hist.Histogram{}
						}
						h.AddTo(tagged[tag])
					}
				}
			}
		}
		for _, tag := range slices.Sorted(maps.Keys(tagged)) {
			if err := log.Write(tag, at(c.at-c.seconds), at(c.at), tagged[tag]); err != nil {
				return err
			}
		}
	}
	return nil
}

// tag is what the format wants without commas and spaces.
func (t *Topic) tag(l recording.Loop, trend recording.Trend, group string) string {
	parts := []string{}
	if l == recording.Closed {
		parts = append(parts, recording.Closed.String())
	}
	if trend.Consumers() && len(t.Groups) > 1 && group != "" {
		parts = append(parts, hist.Tag(group))
	}
	return strings.Join(parts, ":")
}
