package redis

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"

// The optional interfaces, checked by the compiler.
var (
	_ driver.Admin      = streamConn{}
	_ driver.Backlogger = streamConn{}
	_ driver.Informer   = streamConn{}
	_ driver.Unwrapper  = streamConn{}

	_ driver.Admin      = listConn{}
	_ driver.Backlogger = listConn{}
	_ driver.Informer   = listConn{}
	_ driver.Unwrapper  = listConn{}

	_ driver.Informer  = pubsubConn{}
	_ driver.Unwrapper = pubsubConn{}

	_ driver.Prover = &producer{}
)
