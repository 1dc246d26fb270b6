// This file stands in for the bundle of the k6 of the tests, which needs no driver.
package main

import _ "github.com/xk6-broker/xk6-broker/extensions/xk6-broker"
