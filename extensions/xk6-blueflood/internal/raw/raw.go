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

// Ingest sends count points of metrics that take turns, and returns the time for them.
func Ingest(c *http.Client, url, prefix, value string, metrics, count, batch, requests int) (time.Duration, error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, requests)
	start := time.Now()
	for range requests {
		wg.Go(func() {
			for {
				n := int(next.Add(int64(batch)))
				if n > count {
					return
				}
				at := time.Now().UnixMilli()
				points := []byte{'['}
				for i := range batch {
					points = append(points, `{"metricName":"`...)
					points = append(points, prefix...)
					points = strconv.AppendInt(points, int64((n+i)%metrics), 10)
					points = append(points, `","collectionTime":`...)
					points = strconv.AppendInt(points, at, 10)
					points = append(points, `,"metricValue":`...)
					points = append(points, value...)
					points = append(points, `,"ttlInSeconds":86400},`...)
				}
				points[len(points)-1] = ']'
				resp, err := c.Post(url, "application/json", bytes.NewReader(points))
				if err != nil {
					errs <- fmt.Errorf("ingest: %w", err)
					return
				}
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					errs <- fmt.Errorf("ingest: %s", resp.Status)
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
