package result

import (
	"io"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// IntervalLog is the log of one trend of one topic in the format .hlog: the distribution of every interval that was collected. A tag says
// "closed" of what was measured of a closed loop, and names the group where the topic has several: "audit", "closed:audit".
type IntervalLog struct {
	Broker, Topic string
	Trend         metric.Trend
	Write         func(io.Writer) error // writes the text
}
