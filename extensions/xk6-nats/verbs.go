package nats

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"

// The optional verbs of both drivers. A signature that is not quite right would be a verb that is not there.
var (
	_ driver.Informer  = &coreConn{}
	_ driver.Unwrapper = &coreConn{}
	_ driver.Requester = &coreProducer{}
	_ driver.Replier   = &coreConsumer{}
	_ driver.Unwrapper = &coreConsumer{}

	_ driver.Admin          = streamConn{}
	_ driver.TopicDescriber = streamConn{}
	_ driver.Backlogger     = streamConn{}
	_ driver.Prover         = streamConn{}
	_ driver.Informer       = streamConn{}
	_ driver.Unwrapper      = streamConn{}
	_ driver.Unwrapper      = &streamConsumer{}
)
