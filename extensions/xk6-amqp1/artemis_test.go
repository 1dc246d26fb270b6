package amqp1

import (
	"errors"
	"testing"
	"testing/synctest"
)

// What Artemis stumbles over is asked for again, and what was done all the same is done; any other refusal is one.
func TestDeleteTopic_NullPointerInArtemis_Repeated(t *testing.T) {
	stumble := managementError(`["Cannot invoke \"SessionCallback.disconnect(ServerConsumer, String)\" because \"this.callback\" is null"]`)
	gone, refused := managementError(`["AMQ229203: Address Does Not Exist: orders"]`), managementError(`["AMQ229213: no permission"]`)
	for name, c := range map[string]struct {
		answers []error
		want    error
	}{
		"done":              {[]error{nil}, nil},
		"done then":         {[]error{stumble, stumble, nil}, nil},
		"gone by then":      {[]error{stumble, gone}, nil},
		"never there":       {[]error{gone}, gone},
		"refused":           {[]error{refused}, refused},
		"refused then":      {[]error{stumble, refused}, refused},
		"it stumbles again": {[]error{stumble, stumble, stumble, stumble, stumble}, stumble},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			err := retryNull(t.Context(), func() error { asked++; return c.answers[asked-1] })
			if !errors.Is(err, c.want) || asked != len(c.answers) {
				t.Errorf("%s: %v, asked %d times", name, err, asked)
			}
		})
	}
}
