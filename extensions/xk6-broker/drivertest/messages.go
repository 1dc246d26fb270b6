package drivertest

import (
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// messages makes n messages with the bodies name-0000, name-0001, ..., or with numbers that differ
// by name if a body must be a number.
func (k *kit) messages(name string, n int) driver.Batch {
	b := make(driver.Batch, n)
	for i := range b {
		b[i].Body = fmt.Appendf(nil, "%s-%04d", name, i)
		if k.Numbers {
			first := int64(crc32.ChecksumIEEE([]byte(name))) * 10_000
			b[i].Body = strconv.AppendInt(nil, first+int64(i), 10)
		}
	}
	return b
}

// same fails the test if the messages got are not the messages wanted, in any order.
func (k *kit) same(got, want driver.Batch) {
	k.Helper()
	left := map[string]int{}
	for _, m := range want {
		left[string(m.Body)]++
	}
	var missing, unexpected []string
	for _, m := range got {
		body := string(m.Body)
		left[body]--
		if left[body] < 0 {
			unexpected = append(unexpected, body)
		}
	}
	for body, n := range left {
		if n > 0 {
			missing = append(missing, body)
		}
	}
	if len(missing)+len(unexpected) > 0 {
		k.Errorf("of %d messages, missing: %d %s; unexpected: %d %s",
			len(want), len(missing), excerpt(missing), len(unexpected), excerpt(unexpected))
	}
}

func excerpt(bodies []string) string {
	return fmt.Sprintf("%.60q", bodies[:min(len(bodies), 3)])
}

// kind fails the test if there is no error or one of another kind.
func (k *kit) kind(err error, kinds ...driver.Kind) {
	k.Helper()
	if err == nil || !slices.Contains(kinds, k.d.KindOf(err)) {
		k.Errorf("the error is %v, of kind %v, want kind %v", err, k.d.KindOf(err), kinds)
	}
}

// unsupported fails the test if an unclaimed feature is not refused as the contract asks.
func (k *kit) unsupported(feature string, err error) {
	k.Helper()
	if !errors.Is(err, errors.ErrUnsupported) {
		k.Errorf("%s is not claimed and must be refused with errors.ErrUnsupported: %v", feature, err)
	}
}
