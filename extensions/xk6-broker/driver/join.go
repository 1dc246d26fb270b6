package driver

import (
	"errors"
	"fmt"
)

// Join is [errors.Join] for the messages of one call. Errors with the same text are joined to one
// with their number.
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

// PartError is the error of a [Consumer.Settle] for some of its messages. The broker has confirmed
// that it settled the others.
type PartError struct {
	Settled int
	Err     error
}

func (e *PartError) Error() string {
	return fmt.Sprintf("%v (the broker has settled %d others)", e.Err, e.Settled)
}

// Unwrap returns the error of the messages that are not settled.
func (e *PartError) Unwrap() error { return e.Err }

// JoinSettled is [Join] for the answers to each message of a [Consumer.Settle]. It returns a
// [PartError] if some of them are nil.
func JoinSettled(errs ...error) error {
	settled := 0
	for _, e := range errs {
		if e == nil {
			settled++
		}
	}
	if settled == len(errs) {
		return nil
	}
	err := Join(errs...)
	if settled == 0 {
		return err
	}
	return &PartError{settled, err}
}
