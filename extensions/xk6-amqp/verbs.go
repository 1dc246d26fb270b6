package amqp

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"

// The optional interfaces of the drivers: a method with a wrong signature must not compile.
var (
	_ driver.Admin      = &conn{}
	_ driver.Prover     = &conn{}
	_ driver.Informer   = &conn{}
	_ driver.Unwrapper  = &conn{}
	_ driver.Admin      = queueConn{}
	_ driver.Backlogger = queueConn{}
	_ driver.Requester  = &producer{}
	_ driver.Replier    = &consumer{}
)
