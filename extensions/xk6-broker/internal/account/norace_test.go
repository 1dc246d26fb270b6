//go:build !race

package account_test

const raced = false
