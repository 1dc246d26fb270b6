package payload

import (
	"fmt"
	"strconv"
	"strings"
)

// Trace takes the sizes and keys from a trace whose lines have them after the due time: "12.5 512 order-17". What remains has a line for each of the text's.
// All lines have a size, or none; a line without a third word is a message without key. Sizes and keys are nil where no line has any.
func Trace(text string) (due string, sizes Sizes, keys Keys, err error) {
	var (
		rest   strings.Builder
		bytes  []int32
		named  [][]byte
		known  = map[string][]byte{}
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
			if key = known[words[2]]; key == nil {
				key = []byte(words[2])
				known[words[2]] = key
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
