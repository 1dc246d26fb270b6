package collect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrTimeout is the error of waiting for processes of which nothing is heard any more.
var ErrTimeout = errors.New("nothing was heard of them any more")

// Wait waits until the results of all processes are here, but no longer than the timeout after a process was heard of last, or after the beginning.
func (c *Collector) Wait(ctx context.Context, timeout time.Duration) error {
	silence := time.NewTimer(timeout)
	defer silence.Stop()
	for {
		if c.complete() {
			return nil
		}
		select {
		case <-c.news:
			silence.Reset(timeout)
		case <-silence.C:
			return ErrTimeout
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// longestSilence is the longest that nothing is heard of a process that tries again: its pause, and its attempt to reach a collector that was gone.
const longestSilence = mostPause + dialTimeout + time.Second

// Stay waits until those have asked again whose results were here before, but no longer than it can take them from when this collector was opened: the one
// before it may have died before it told them, and they would try in vain if this one went first.
func (c *Collector) Stay(ctx context.Context) {
	left := time.Until(c.opened.Add(longestSilence))
	if left > 0 && c.owesAnswers() {
		c.tell(fmt.Sprintf("staying for up to %v, for those who may not know that theirs was received", left.Round(time.Second)))
	}
	over := time.NewTimer(left)
	defer over.Stop()
	for c.owesAnswers() {
		select {
		case <-c.news:
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *Collector) owesAnswers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.untold) > 0
}

func (c *Collector) complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.processes > 0 && len(c.received) == c.processes
}

// Processes is how many processes the test has, as far as that is known; else 0.
func (c *Collector) Processes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.processes
}

// Folders lists what was received, by name.
func (c *Collector) Folders() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.received)) {
		all = append(all, filepath.Join(c.dir, name))
	}
	return all
}

// Missing names the processes whose results are not here, as far as they are known: by their names those that were heard of, by their execution segments
// those that others know of.
func (c *Collector) Missing() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, instance := range slices.Sorted(maps.Keys(c.heard)) {
		all = append(all, c.heard[instance].String())
	}
	segments, sequence := map[string]bool{}, ""
	for _, p := range c.all() {
		segments[p.Segment], sequence = true, max(sequence, p.Sequence)
	}
	if ends := strings.Split(sequence, ","); len(ends) == c.processes+1 {
		for i := range c.processes {
			if segment := ends[i] + ":" + ends[i+1]; !segments[segment] {
				all = append(all, fmt.Sprintf("the one of execution segment %s, of which nothing was heard", segment))
			}
		}
	}
	if n := c.processes - len(c.received) - len(all); n > 0 {
		all = append(all, fmt.Sprintf("%d of which nothing was heard", n))
	}
	return all
}
