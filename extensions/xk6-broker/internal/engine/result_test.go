package engine

import (
	"reflect"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine/summary"
)

func TestUsersOfATopicAreKeptOnceAndInOrder(t *testing.T) {
	topic := &Topic{uses: summary.Options{}}
	for range 2 {
		topic.Use("producer", map[string]any{"linger": "5ms"})
		topic.Use("producer", map[string]any{"linger": "0s"})
	}
	want := summary.Options{"producer": {{"linger": "0s"}, {"linger": "5ms"}}}
	if got := topic.uses; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	for i := range 10 * summary.MostOptions {
		topic.Use("produce", map[string]any{"seed": i})
	}
	if n := len(topic.uses["produce"]); n != summary.MostOptions {
		t.Errorf("%d users are kept", n)
	}
}
