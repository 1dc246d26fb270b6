package amqp1

import "sync"

// credit is how many more messages the broker may send to a consumer: its prefetch, less those that have come and are not settled. What became free
// is given to the broker some at a time, as each time is a frame; at once where nothing could come any more and the consumer has taken all that has.
type credit struct {
	issue func(messages uint32) error

	mu      sync.Mutex
	enough  int // to be given
	free    int // and not given yet
	left    int // with the broker
	waiting int // have come and are not received
	held    int // have come and are not settled
}

func newCredit(prefetch int, issue func(uint32) error) *credit {
	return &credit{issue: issue, enough: max(1, prefetch/4), free: prefetch}
}

// arrived, received and settled say what has become of messages.
func (c *credit) arrived(messages int)  { c.change(-messages, messages, 0) }
func (c *credit) received(messages int) { c.change(0, -messages, 0) }
func (c *credit) settled(messages int)  { c.change(0, 0, messages) }

// unsettled is how many messages have come and are not settled.
func (c *credit) unsettled() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.held)
}

func (c *credit) change(left, waiting, free int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left += left
	c.waiting += waiting
	c.free += free
	c.held -= left + free
	if c.free >= c.enough || c.free > 0 && c.left <= 0 && c.waiting == 0 {
		if c.issue(uint32(c.free)) == nil { //gosec:disable G115 -- never more than the prefetch; the call never waits
			c.left += c.free
			c.free = 0
		}
	}
}
