package influxdb

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// maxField is the greatest size of a string field in bytes.
const maxField = 64 << 10

// latest is the time of the latest point of this process.
var latest atomic.Int64

// times returns the first of n unique times, one nanosecond apart.
func times(n int) int64 {
	for {
		before := latest.Load()
		first := max(before+1, time.Now().UnixNano())
		if latest.CompareAndSwap(before, first+int64(n)-1) {
			return first
		}
	}
}

var (
	names  = strings.NewReplacer(",", `\,`, "=", `\=`, " ", `\ `) // of tags, and their values
	series = strings.NewReplacer(",", `\,`, " ", `\ `)            // of measurements
	text   = strings.NewReplacer(`"`, `\"`, `\`, `\\`)            // in a string field
)

// checkName returns an error if the line protocol cannot write a name or a tag's value.
func checkName(option, name string) error {
	isLine := utf8.ValidString(name) && !strings.ContainsAny(name, "\n\r\x00")
	if name == "" || !isLine || strings.HasSuffix(name, `\`) {
		err := fmt.Errorf("%q should be text in one line that does not end in a backslash", name)
		return &driver.OptionError{Name: option, Err: err}
	}
	return nil
}

// head returns the measurement with the tags of all points of a producer.
func head(measurement string, tags map[string]any, producer string) (string, error) {
	if err := checkName("topic", measurement); err != nil {
		return "", err
	}
	if strings.HasPrefix(measurement, "#") {
		return "", &driver.OptionError{Name: "topic", Err: errors.New("in the line protocol # begins a comment")}
	}
	h := series.Replace(measurement) + ",producer=" + producer
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		value := driver.Text(tags[name])
		for _, part := range []string{name, value} {
			if err := checkName("tags", part); err != nil {
				return "", err
			}
		}
		if name == "producer" || name == "key" {
			return "", &driver.OptionError{Name: "tags", Err: fmt.Errorf("the tag %q is the driver's", name)}
		}
		h += "," + names.Replace(name) + "=" + names.Replace(value)
	}
	return h, nil
}

// line appends a message's point.
func (p *producer) line(lines []byte, m *driver.Message, at int64) ([]byte, error) {
	if len(m.Headers) > 0 {
		return lines, errHeaders
	}
	before := len(lines)
	lines = append(lines, p.head...)
	if len(m.Key) > 0 {
		key := string(m.Key)
		if err := checkName("key", key); err != nil {
			return lines[:before], err
		}
		lines = append(lines, ",key="+names.Replace(key)...)
	}
	lines = append(lines, ' ')
	switch {
	case p.fields:
		lines = append(lines, m.Body...)
	case len(m.Body) > maxField:
		return lines[:before], errLarge
	case utf8.Valid(m.Body) && !strings.ContainsRune(string(m.Body), 0):
		lines = append(append(append(lines, `body="`...), text.Replace(string(m.Body))...), '"')
	case base64.StdEncoding.EncodedLen(len(m.Body)) > maxField:
		return lines[:before], errLarge
	default:
		lines = append(base64.StdEncoding.AppendEncode(append(lines, `base64="`...), m.Body), '"')
	}
	return append(strconv.AppendInt(append(lines, ' '), at, 10), '\n'), nil
}

var errHeaders = fmt.Errorf("headers: %w", errors.ErrUnsupported)
