// Package faulty holds a message broker in memory with a correct driver for it, and some twenty ways to break that driver.
// The correct one is for tests that want a broker whose every delay they decide, also in virtual time (testing/synctest);
// the broken ones prove that the conformance kit notices.
package faulty
