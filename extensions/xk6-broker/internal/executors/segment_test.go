package executors

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Segments of one test, run side by side, produce together exactly the arrivals of the whole.
func TestSegmentsTogetherAreTheWhole(t *testing.T) {
	for _, schedule := range []string{
		`"rate":997,"duration":"2s"`,
		`"rate":300,"duration":"2s","arrivals":"poisson","seed":11`,
		`"startRate":1,"stages":[{"target":400,"duration":"2s"},{"target":5,"duration":"1s"}]`,
		`"rate":3,"duration":"1s"`,
	} {
		for _, vus := range []string{`"preAllocatedVUs":2,"maxVUs":10`, `"preAllocatedVUs":50`, `"preAllocatedVUs":1`} {
			options := fmt.Sprintf(`{%s,%s}`, schedule, vus)
			whole := scenario{options: options}.run(t).byIndex()
			for _, sequence := range []string{"0,1/4,1/2,3/4,1", "0,1/3,1", "0,0.1,0.25,0.7,1"} {
				points := strings.Split(sequence, ",")
				seen := make([]bool, len(whole))
				total := 0
				for i := range points[1:] {
					segment := points[i] + ":" + points[i+1]
					c, et := parse(t, options), tuple(t, segment, sequence)
					if !c.HasWork(et) {
						continue
					}
					o := scenario{options: options, segment: segment, sequence: sequence}.run(t)
					total += len(o.arrivals)
					for n, a := range o.byIndex() {
						if a.Index >= uint64(len(whole)) || seen[a.Index] || a.Due != whole[a.Index].Due || a.Started != a.Due {
							t.Fatalf("%s, segment %s of %s: arrival %+v is not one of the whole's, or comes twice", options, segment, sequence, a)
						}
						if local := o.counters[n]; local != [2]uint64{uint64(n), a.Index} {
							t.Fatalf("%s, segment %s: counters %v of arrival %d", options, segment, local, a.Index)
						}
						seen[a.Index] = true
					}
				}
				if total != len(whole) {
					t.Errorf("%s, %s: %d arrivals, the whole has %d", options, sequence, total, len(whole))
				}
			}
		}
	}
}

// Each segment has the share of the rate that its length is, to the arrival, whatever maxVUs is.
func TestSharesDoNotDependOnVUs(t *testing.T) {
	for vus := 1; vus <= 13; vus++ {
		c := parse(t, fmt.Sprintf(`{"rate":1000,"duration":"1s","preAllocatedVUs":%d}`, vus))
		for i := range 4 {
			et := tuple(t, fmt.Sprintf("%d/4:%d/4", i, i+1), "0,1/4,1/2,3/4,1")
			s, err := c.arrivals(et)
			if err != nil {
				t.Fatal(err)
			}
			share := Part{et}.Share()
			n := uint64(0)
			for ; ; n++ {
				if at, ok := s.At(n); !ok {
					break
				} else if at != time.Duration(share.Index(n))*time.Millisecond {
					t.Fatalf("arrival %d of segment %d is due at %v", share.Index(n), i, at)
				}
			}
			if _, most := c.vus(et); n != 250 || most < 1 || !c.HasWork(et) {
				t.Errorf("%d VUs: segment %d has %d arrivals and %d VUs", vus, i, n, most)
			}
		}
	}
}
