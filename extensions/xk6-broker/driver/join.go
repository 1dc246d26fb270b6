package driver

import (
	"errors"
	"fmt"
)

// Join is [errors.Join] for what became of several messages in one call: a reason that many of them failed for is there once, with their number.
func Join(errs ...error) error {
	times := map[string]int{}
	var first []error
	for _, err := range errs {
		if err == nil {
			continue
		}
		if times[err.Error()]++; times[err.Error()] == 1 {
			first = append(first, err)
		}
	}
	for i, err := range first {
		if n := times[err.Error()]; n > 1 {
			first[i] = fmt.Errorf("%w (%d times)", err, n)
		}
	}
	return errors.Join(first...)
}
