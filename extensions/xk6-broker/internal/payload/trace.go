package payload

import (
	"fmt"
	"strconv"
	"strings"
)

// Trace splits a trace with lines such as "12.5 512 order-17" into due times, one a line, sizes and
// keys. All lines have a size, or none; the key is optional. Sizes and keys are nil if no line has
// any.
func Trace(text string) (due string, sizes Sizes, keys Keys, err error) {
	var (
		rest   strings.Builder
		bytes  []int32
		named  [][]byte
		shared = map[string][]byte{}
		lines  int // with a due time
		number int
		some   bool // have a key
	)
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) > 0 {
			rest.WriteString(words[0])
			lines++
		}
		rest.WriteByte('\n')
		if len(words) < 2 {
			continue
		}
		if len(words) > 3 {
			return "", nil, nil, fmt.Errorf("trace: line %d: a due time, a size and a key are all there can be", number)
		}
		size, err := strconv.ParseInt(words[1], 10, 31)
		if err != nil || size < 0 {
			return "", nil, nil, fmt.Errorf("trace: line %d: %q is not a size in bytes", number, words[1])
		}
		bytes = append(bytes, int32(size))
		if len(bytes) < lines {
			return "", nil, nil, fmt.Errorf("trace: line %d has a size, and one before it has none", number)
		}
		var key []byte
		if len(words) == 3 {
			some = true
			if key = shared[words[2]]; key == nil {
				key = []byte(words[2])
				shared[words[2]] = key
			}
		}
		named = append(named, key)
	}
	if len(bytes) == 0 {
		return text, nil, nil, nil
	}
	if len(bytes) < lines {
		return "", nil, nil, fmt.Errorf("trace: %d of %d lines have no size", lines-len(bytes), lines)
	}
	if some {
		keys = RecordedKeys(named)
	}
	return rest.String(), Recorded(bytes), keys, nil
}
