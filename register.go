// Package broker is xk6-broker with every driver of this repository: what k6 has in it that is built with
// `xk6 build --with github.com/xk6-broker/xk6-broker`. One line for each driver: a new broker is one more.
package broker

import (
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-amqp"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-amqp1"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-blueflood"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-broker"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-influxdb"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-kafka"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-kurrentdb"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-mongodb"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-nats"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-postgres"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-pulsar"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-redis"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-rocketmq"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-sqs"
)
