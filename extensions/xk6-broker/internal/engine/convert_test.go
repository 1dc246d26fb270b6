package engine

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"

// Result returns the result of the run so far.
func (c *Collector) Result() *result.Result { return result.New(c.Measured()) }
