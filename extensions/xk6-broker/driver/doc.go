// Package driver is the contract between xk6-broker and a message broker: everything a broker's driver must do,
// and nothing else. It depends on the standard library only.
//
// A driver is a [Driver] value passed to [Register] in an init function and found by the scheme of a URL, in the
// manner of database/sql. It opens connections ([Conn]), which make producers ([Producer]) and consumers ([Consumer]):
// eight methods. What differs between brokers is data where it is semantics ([Features]) and an optional interface
// where it is a verb ([Admin], [Backlogger], [Requester],
// [Replier], [Informer], [Unwrapper]).
//
// Beside it is what drivers would otherwise write again and again, for those that have a use for it: package inbox (what came and was not received yet, within
// the prefetch), package redial (a connection that is dialed again after it broke), and here how to connect ([ConnectOptions], [Target]) and the
// network's errors ([NetworkKind]). What answers at a port and is none of a driver's servers is told by [Address.Open], from what the driver says of its
// [Protocol].
//
// # Rules for every driver
//
//   - Return the client library's own error. The engine wraps it once, as an [Error] of the kind that Classify tells.
//   - Never retry, and turn the client's silent retries off where it can be done; say so in the package's documentation
//     where it cannot. A load tester must not hide failures.
//   - Never delay a message in order to batch it, unless an option of the user asks for it.
//   - Never log, never print, never put a secret in an error.
//   - Take the time only from [Now].
//   - Start no goroutine that outlives Close.
package driver
