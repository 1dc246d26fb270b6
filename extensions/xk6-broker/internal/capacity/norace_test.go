//go:build !race

package capacity

// seeds is how many searches there are of each system.
const seeds = 20
