package k6

import (
	"testing"

	"go.k6.io/k6/v2/ext"
)

type noted map[string]any

func (n noted) Map() map[string]any { return n }

func TestStored(t *testing.T) {
	module, output := &ext.Extension{Name: "k6/x/broker", Type: ext.JSExtension}, &ext.Extension{Name: "mine", Type: ext.OutputExtension}
	for name, c := range map[string]struct {
		usage usage
		want  bool
	}{
		"nothing is noted down":   {nil, true},
		"no output":               {noted{"extensions": []any{module}, "executors": map[string]any{}}, false},
		"an output of k6's own":   {noted{"extensions": []any{module}, "outputs": []string{"influxdb"}}, true},
		"an output by extension":  {noted{"extensions": []any{module, output}}, true},
		"no extension, no output": {noted{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stored(c.usage); got != c.want {
				t.Errorf("stored is %v", got)
			}
		})
	}
}
