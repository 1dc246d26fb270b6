package nats

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"

// The optional interfaces, checked by the compiler.
var (
	_ driver.Informer  = &coreConn{}
	_ driver.Unwrapper = &coreConn{}
	_ driver.Requester = &coreProducer{}
	_ driver.Replier   = &coreConsumer{}

	_ driver.Admin          = streamConn{}
	_ driver.TopicDescriber = streamConn{}
	_ driver.Backlogger     = streamConn{}
	_ driver.Prover         = streamConn{}
	_ driver.Informer       = streamConn{}
	_ driver.Unwrapper      = streamConn{}
)
