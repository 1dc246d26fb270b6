//go:build race

package account_test

// raced tells that the race detector is on, which makes everything ten times slower and counts no memory.
const raced = true
