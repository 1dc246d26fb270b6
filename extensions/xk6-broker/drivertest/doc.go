// Package drivertest proves that a driver keeps the contract of package driver and does what its Features claim.
//
// A driver's test is a few lines:
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, drivertest.Harness{Driver: "nats", URL: os.Getenv("BROKER_URL_NATS")})
//	}
//
//	func TestStrangers(t *testing.T) { drivertest.Strangers(t, "nats://127.0.0.1:4222") } // needs no server
//
// The claims are gated both ways: what Features claims must be shown by a real server, and what it does not claim must
// be refused with [errors.ErrUnsupported] or be absent. A test that needs a fault which the harness cannot cause is
// skipped as "not proven", never passed.
//
// Nothing here asserts a short time on a single event. What must happen may take up to [Harness.Patience]; what must
// not happen is watched for a moment; and bounds on latency are on the best of many, so that a busy machine cannot fail
// a good driver and a driver that lingers cannot pass.
package drivertest
