// Package memory is a message broker in memory with its driver: the smallest whole driver there is, to read before one writes another, and
// a broker for tests that decide its every delay, also in virtual time (testing/synctest).
package memory
