package study

import (
	"fmt"
	"slices"
)

// shades is how many the page has.
const shades = 8

// Shade is the class of a number in a heat map, by its rank among all numbers in ascending order, so that one extreme does not make all the others alike.
func Shade(all []float64, v float64) string {
	rank, _ := slices.BinarySearch(all, v)
	return fmt.Sprintf("h%d", 1+(shades-1)*rank/max(1, len(all)-1))
}
