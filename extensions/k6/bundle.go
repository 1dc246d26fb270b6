package main

// One line for each extension: a new broker is one more.
import (
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-broker"
	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-nats"
)
