// This file stands in for the bundle of the k6 of the tests, which needs the executor and nothing else.
package main

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/executor"

func init() { executor.Register() }
