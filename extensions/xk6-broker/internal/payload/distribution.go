package payload

import "math/bits"

// below maps random bits to a number from 0 to n-1, all equally likely (Lemire: Fast Random Integer
// Generation in an Interval, 2019).
func below(random uint64, n int) int {
	hi, _ := bits.Mul64(random, uint64(n)) //gosec:disable G115 -- n is above 0
	return int(hi)                         //gosec:disable G115 -- less than n
}

// unit maps random bits to a number from 0 to 1, without 1.
func unit(random uint64) float64 { return float64(random>>11) / (1 << 53) }

// weighted is a distribution over 0 … n-1 by weights, with draws in constant time: Walker's alias
// method with the tables of Vose (A Linear Algorithm for Generating Random Numbers with a Given
// Distribution, 1991).
type weighted struct {
	own   []float64 // the share of the column's own number
	other []int32   // the number of the rest of the column
}

// newWeighted makes a distribution. No weight is negative, and some are not 0.
func newWeighted(weights []float64) *weighted {
	n := len(weights)
	w := &weighted{own: make([]float64, n), other: make([]int32, n)}
	sum := 0.0
	for _, weight := range weights {
		sum += weight
	}
	var small, large []int32
	for i, weight := range weights {
		w.own[i], w.other[i] = weight/sum*float64(n), int32(i)
		if w.own[i] < 1 {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		w.other[s] = l
		if w.own[l] -= 1 - w.own[s]; w.own[l] < 1 {
			large, small = large[:len(large)-1], append(small, l)
		}
	}
	for _, rest := range [][]int32{small, large} { // 1 but for rounding
		for _, i := range rest {
			w.own[i] = 1
		}
	}
	return w
}

// choose maps random bits to a number.
func (w *weighted) choose(random uint64) int {
	column, within := bits.Mul64(random, uint64(len(w.own)))
	if unit(within) < w.own[column] {
		return int(column) //gosec:disable G115 -- less than the number of columns
	}
	return int(w.other[column])
}
