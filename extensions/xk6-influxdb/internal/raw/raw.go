// Package raw has a loop written by hand with net/http: the measure for the driver.
package raw

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Write writes count points with one field to a measurement, and returns the time for them.
func Write(c *http.Client, url, measurement, field string, count, batch, requests int) (time.Duration, error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, requests)
	start := time.Now()
	at := start.UnixNano()
	for range requests {
		wg.Go(func() {
			for {
				n := next.Add(int64(batch))
				if n > int64(count) {
					return
				}
				var lines []byte
				for i := range batch {
					lines = append(lines, measurement...)
					lines = append(lines, ",producer=raw "...)
					lines = append(lines, field...)
					lines = append(lines, ' ')
					lines = strconv.AppendInt(lines, at+n+int64(i), 10)
					lines = append(lines, '\n')
				}
				resp, err := c.Post(url, "text/plain", bytes.NewReader(lines))
				if err != nil {
					errs <- fmt.Errorf("write: %w", err)
					return
				}
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusNoContent {
					errs <- fmt.Errorf("write: %s", resp.Status)
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
		return time.Since(start), nil
	}
}
