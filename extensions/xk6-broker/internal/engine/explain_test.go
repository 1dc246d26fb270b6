package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A store that only takes, and has lost its database, is not helped by createTopic.
func TestWhatIsNotThereIsNotAlwaysATopic(t *testing.T) {
	absent := errors.New("database not found")
	for start, hint := range map[driver.Start]bool{driver.StartNew: true, 0: false} {
		d := &driver.Driver{Features: driver.Features{Start: start}, Classify: func(error) driver.Kind { return driver.NotFound }}
		topic := &Topic{Name: "orders", Address: &driver.Address{Driver: d}}
		if said := topic.explain(absent); !errors.Is(said, absent) || strings.Contains(said.Error(), "createTopic") != hint {
			t.Errorf("start %v: %v", start, said)
		}
	}
}
