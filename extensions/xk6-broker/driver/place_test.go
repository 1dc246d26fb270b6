package driver

import (
	"cmp"
	"slices"
	"testing"
)

func TestPositionsAreOrderedAndWrittenAsTheBrokerDoes(t *testing.T) {
	ascending := []Position{
		{},
		At(0), At(7), At(10), At(1<<64 - 1),
		{Identifier, 0, 1, 0},
		{Identifier, 9, 12, 0},
		{Identifier, 9, 12, 3},
		{Identifier, 9, 100, 0},
		{Identifier, 10, 0, 0},
	}
	for i, p := range ascending {
		for j, q := range ascending {
			if got := p.Compare(q); got != cmp.Compare(i, j) {
				t.Errorf("%v and %v: %d", p, q, got)
			}
		}
	}
	var got []string
	for _, p := range ascending {
		got = append(got, p.String())
	}
	if want := []string{"", "0", "7", "10", "18446744073709551615", "0-1", "9-12", "9-12-3", "9-100", "10-0"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
