//go:build !race

package pulsar

const raced = false
