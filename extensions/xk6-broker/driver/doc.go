// Package driver is the contract between xk6-broker and a message broker: everything a broker's
// driver must do, and nothing else. It depends on the standard library only.
//
// A driver is a [Driver] value passed to [Register] in an init function and found by the scheme of
// a URL, in the manner of database/sql. It opens connections ([Conn]), which make producers
// ([Producer]) and consumers ([Consumer]): eight methods. What differs between brokers is data
// where it is semantics ([Features]) and an optional interface where it is a verb ([Admin],
// [Backlogger], [Requester], [Replier], [Informer], [Unwrapper]).
//
// Helpers for drivers are package inbox (messages that wait to be received, within the prefetch),
// package outbox, package redial (a connection that is dialed again after it broke), and here the
// options to connect ([ConnectOptions], [Target]) and errors of the network ([NetworkKind]).
// [Address.Open] names another server at the port by the driver's [Protocol].
//
// # Rules for every driver
//
//   - Return the client library's own error. The engine wraps it once, as an [Error] of the kind that Classify returns.
//   - Never retry, and turn the client's silent retries off, or document in the package that it is not possible. A load tester must not hide failures.
//   - Never delay a message in order to batch it, unless an option of the user asks for it.
//   - Never log, never print, never put a secret in an error.
//   - Take the time only from [Now].
//   - Start no goroutine that outlives Close.
package driver
