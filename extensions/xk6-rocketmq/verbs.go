package rocketmq

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"

// The optional interfaces, checked by the compiler.
var (
	_ driver.Admin          = &conn{}
	_ driver.TopicDescriber = &conn{}
	_ driver.Backlogger     = &conn{}
	_ driver.Prover         = &conn{}
	_ driver.Informer       = &conn{}
)
