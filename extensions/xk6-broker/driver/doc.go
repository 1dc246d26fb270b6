// Package driver is the contract between xk6-broker and a message broker. It depends on the standard
// library only.
//
// A driver is a [Driver] value passed to [Register] in an init function and found by the scheme of a
// URL, as in database/sql. It opens connections ([Conn]), which make producers ([Producer]) and
// consumers ([Consumer]): eight methods. Semantics of brokers are data ([Features], [Option]); verbs
// that only some brokers have are optional interfaces ([Admin], [Backlogger], [Prover], [Requester]).
//
// Helpers for drivers: package inbox (messages that wait to be received), lease (consumers of leased
// messages), outbox (messages that wait to be sent), and redial (connections that are opened again).
//
// # Rules for every driver
//
//   - Return the client library's own error. The engine wraps it once, as an [Error] of the kind that Classify returns.
//   - Never retry, and turn the client's silent retries off, or document in the package that it is not possible.
//   - Never delay a message in order to batch it, unless an option of the user asks for it.
//   - Never log, never print, never put a secret in an error.
//   - Take the time only from [Now].
//   - Start no goroutine that outlives Close.
package driver
