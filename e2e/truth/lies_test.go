package truth

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/lies"
)

// Each way in which a load test can state a falsehood is met with a word, in the verdict or its notes.
func TestNoLieGoesWithoutAWord(t *testing.T) {
	url := harness.URL(t, "BROKER_URL_NATS_JETSTREAM")
	for _, lie := range lies.All() {
		t.Run(lie.Name, func(t *testing.T) {
			t.Parallel()
			o, err := lies.Run(harness.Binary, url, lie)
			if err != nil {
				t.Fatal(err)
			}
			if !o.Result.Verdict.Has(lie.Code, lie.Why) {
				t.Errorf("no %s %s: %+v\n%s", lie.Code, lie.Why, o.Result.Verdict, o.Output)
			}
			if o.Result.Verdict.Valid && !lie.Valid {
				t.Errorf("it is valid\n%s", o.Output)
			}
			if lie.Fails && o.Code == 0 {
				t.Error("k6 ended with 0")
			}
		})
	}
}
