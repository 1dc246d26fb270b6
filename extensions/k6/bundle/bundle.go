// Package bundle has every driver of this repository in it. One line for each: a new broker is one more.
package bundle

import (
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-amqp"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-kafka"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-nats"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-redis"
)
