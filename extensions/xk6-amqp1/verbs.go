package amqp1

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"

// The optional verbs. A signature that is not quite right would be a verb that is not there.
var (
	_ driver.Admin      = &conn{}
	_ driver.Backlogger = &conn{}
	_ driver.Informer   = &conn{}
	_ driver.Prover     = &conn{}
	_ driver.Unwrapper  = &conn{}
	_ driver.Unwrapper  = &producer{}
	_ driver.Unwrapper  = &consumer{}
	_ driver.Requester  = &producer{}
	_ driver.Replier    = &consumer{}
)
