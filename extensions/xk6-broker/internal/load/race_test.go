//go:build race

package load

// raced tells whether the race detector watches, with which all takes ten times as long.
const raced = true
