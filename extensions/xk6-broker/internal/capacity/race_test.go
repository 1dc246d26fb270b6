//go:build race

package capacity

// seeds is how many searches there are of each system: with the race detector each takes ten times as long.
const seeds = 2
