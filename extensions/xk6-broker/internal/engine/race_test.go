//go:build race

package engine

// raced tells whether the race detector watches, with which all takes ten times as long.
const raced = true
