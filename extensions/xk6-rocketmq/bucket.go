package rocketmq

import "unicode/utf16"

// bucket returns the queue that a server chooses for a message group: Guava's consistent hash of
// Java's string hash.
func bucket(group string, queues int) int {
	var hash int32
	for _, unit := range utf16.Encode([]rune(group)) {
		hash = 31*hash + int32(unit)
	}
	state := int64(hash)
	for candidate := 0; ; {
		state = 2862933555777941757*state + 1
		random := float64(int32(uint64(state)>>33)+1) / (1 << 31)
		next := int(float64(candidate+1) / random)
		if next < 0 || next >= queues {
			return candidate
		}
		candidate = next
	}
}
