package sweep

import (
	"fmt"
	"math"
	"slices"
)

// shades is how many the page has.
const shades = 8

// Shade is the class of a number in a heat map whose numbers go from the least to the greatest.
func Shade(least, greatest, v float64) string {
	rank, _ := slices.BinarySearch(levels(least, greatest), v)
	return fmt.Sprintf("h%d", 1+rank)
}

// levels are the numbers up to which a map has each of its shades, in equal steps from the least to the greatest; where the one is ten times the other, by
// equal factors, so that one extreme does not make all the others alike.
func levels(least, greatest float64) (all []float64) {
	byFactors := least > 0 && greatest/least >= 10
	for i := range shades - 1 {
		at := (float64(i) + 0.5) / (shades - 1)
		if byFactors {
			all = append(all, least*math.Pow(greatest/least, at))
		} else {
			all = append(all, least+(greatest-least)*at)
		}
	}
	return append(all, greatest)
}
