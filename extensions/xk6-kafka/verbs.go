package kafka

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"

// The optional verbs of both drivers. A signature that is not quite right would be a verb that is not there.
var (
	_ driver.Admin          = &conn{}
	_ driver.TopicDescriber = &conn{}
	_ driver.Backlogger     = &conn{}
	_ driver.Prover         = &conn{}
	_ driver.Informer       = &conn{}
	_ driver.Unwrapper      = &conn{}
	_ driver.Unwrapper      = &producer{}
	_ driver.Unwrapper      = &groupConsumer{}
	_ driver.Unwrapper      = &shareConsumer{}
)

var (
	_ driver.Admin          = &kmqConn{}
	_ driver.TopicDescriber = &kmqConn{}
	_ driver.Backlogger     = &kmqConn{}
	_ driver.Prover         = &kmqConn{}
	_ driver.Informer       = &kmqConn{}
	_ driver.Unwrapper      = &kmqConn{}
	_ driver.Unwrapper      = &kmqConsumer{}
)
