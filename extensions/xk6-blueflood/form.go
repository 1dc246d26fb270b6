package blueflood

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// form writes a producer's points.
type form struct {
	prefix string // of the metrics' names
	head   string // up to a metric's number
	tail   string // after the value
	sizes  bool   // the value is the body's size
	ttl    time.Duration
}

func newForm(prefix string, sizes bool, ttl time.Duration, unit string) form {
	f := form{
		prefix: prefix,
		sizes:  sizes,
		ttl:    ttl,
		tail:   `,"ttlInSeconds":` + strconv.FormatInt(int64(ttl/time.Second), 10),
	}
	quoted := quote(prefix)
	f.head = `{"metricName":` + quoted[:len(quoted)-1]
	if unit != "" {
		f.tail += `,"unit":` + quote(unit)
	}
	f.tail += "},"
	return f
}

func quote(text string) string {
	quoted, _ := json.Marshal(text) // a string does not fail
	return string(quoted)
}

// size is the greatest size of a batch in bytes.
func (f *form) size(b driver.Batch) int {
	n := len("[]") + len(b)*(len(f.head)+len(`1234567","collectionTime":1234567890123,"metricValue":`)+len(f.tail))
	for i := range b {
		n += max(len(b[i].Body), len("1234567890"))
	}
	return n
}

// point appends a message's point, and a comma.
func (f *form) point(to []byte, m *driver.Message, metric int, at int64) ([]byte, error) {
	if len(m.Headers) > 0 {
		return to, errHeaders
	}
	if !f.sizes && !isNumber(m.Body) {
		return to, errNumber
	}
	to = strconv.AppendInt(append(to, f.head...), int64(metric), 10)
	to = strconv.AppendInt(append(to, `","collectionTime":`...), at, 10)
	to = append(to, `,"metricValue":`...)
	if f.sizes {
		to = strconv.AppendInt(to, int64(len(m.Body)), 10)
	} else {
		to = append(to, m.Body...)
	}
	return append(to, f.tail...), nil
}

// isNumber reports whether a body is a finite number in JSON.
func isNumber(body []byte) bool {
	if len(body) == 0 || len(body) > maxNumber || unicode.IsSpace(rune(body[0])) || !json.Valid(body) {
		return false
	}
	_, err := strconv.ParseFloat(string(bytes.TrimSpace(body)), 64)
	return err == nil
}

// maxNumber is the greatest length of a number's text, more than a float needs.
const maxNumber = 64

// alone returns a request of one point of any metric.
func (f *form) alone(metric string, at int64) []byte {
	body := append([]byte(`[{"metricName":`), quote(metric)...)
	body = strconv.AppendInt(append(body, `,"collectionTime":`...), at, 10)
	body = append(append(body, `,"metricValue":1`...), f.tail...)
	body[len(body)-1] = ']'
	return body
}

// metric returns the name of metric n.
func (f *form) metric(n int) string { return f.prefix + strconv.Itoa(n) }

// name returns the name of a point.
func (f *form) name(metric int, at int64) string { return nameOf(f.metric(metric), at) }

func nameOf(metric string, at int64) string { return metric + "@" + strconv.FormatInt(at, 10) }
