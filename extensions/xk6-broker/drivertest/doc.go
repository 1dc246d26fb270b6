// Package drivertest proves that a driver keeps the contract of package driver and its Features.
//
// A driver's test is a few lines:
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, drivertest.Harness{Driver: "nats", URL: os.Getenv("BROKER_URL_NATS")})
//	}
//
//	func TestStrangers(t *testing.T) { drivertest.Strangers(t, "nats://127.0.0.1:4222") } // needs no server
//
// A claimed feature must work on a real server. A feature that is not claimed must be refused with
// [errors.ErrUnsupported] or be absent. A test that needs a fault which the harness cannot cause is
// skipped as "not proven", never passed.
//
// No test asserts a short time of a single event. An event that must happen may take up to
// [Harness.Timeout], and bounds on latency are on the best of many messages.
package drivertest
