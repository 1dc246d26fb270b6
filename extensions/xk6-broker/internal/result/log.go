package result

import (
	"fmt"
	"io"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// IntervalLog is the log of one trend of one topic in the format .hlog: the distribution of every interval that was collected. A tag says
// "closed" of what was measured of a closed loop, and names the group where the topic has several: "audit", "closed:audit".
type IntervalLog struct {
	Broker, Topic string
	Trend         metric.Trend
	Write         func(io.Writer) error // writes the text
}

// TagOf is the tag of an interval, which the format wants without commas and spaces. A group of "" is not named.
func TagOf(l metric.Loop, group string) string {
	parts := []string{}
	if l == metric.Closed {
		parts = append(parts, metric.Closed.String())
	}
	if group != "" {
		parts = append(parts, hist.Tag(group))
	}
	return strings.Join(parts, ":")
}

// loopOf is the loop that a tag is of, and what else it says.
func loopOf(tag string) (l metric.Loop, group string) {
	if tag == metric.Closed.String() {
		return metric.Closed, ""
	}
	if group, ok := strings.CutPrefix(tag, metric.Closed.String()+":"); ok {
		return metric.Closed, group
	}
	return metric.Open, tag
}

// Tagged says what an interval of a trend with a tag is of: the name of the trend in the result, and the place of the group, 0 where the trend is
// of no group. The name is known also where there is an error.
func (t *Topic) Tagged(trend metric.Trend, tag string) (name string, group int, err error) {
	name = trend.String()
	loop, tag := loopOf(tag)
	if t.OpenLoop {
		name = trend.In(loop)
	}
	if !trend.Consumers() {
		return name, 0, nil
	}
	group = -1
	for i, g := range t.Groups {
		if tag != "" && hist.Tag(g.Group) != tag || tag == "" && len(t.Groups) > 1 {
			continue
		}
		if group >= 0 {
			return name, 0, fmt.Errorf("the tag %q may be of the groups %q and %q", tag, t.Groups[group].Group, g.Group)
		}
		group = i
	}
	if group < 0 {
		return name, 0, fmt.Errorf("an interval with the tag %q is of a group that it does not tell", tag)
	}
	return name, group, nil
}
