package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var (
	errSettled = errors.New("the delivery is settled already, or its lease is over")
	errLarge   = fmt.Errorf("the body is larger than the %d bytes that a value may have", maxBody)
)

// doubtError is the server's warning of a commit that did not wait for a standby.
type doubtError string

func (e doubtError) Error() string { return "the server warned: " + string(e) }

// missingError reports a transaction that stored another number of rows than messages. The server
// does not return the missing ones.
type missingError struct {
	stored   int64
	messages int
}

func (e *missingError) Error() string {
	return fmt.Sprintf(
		"the server stored %d rows of a transaction of %d messages, and does not say which: a trigger or a rule of the table leaves some out, or puts them elsewhere",
		e.stored,
		e.messages,
	)
}

// kinds has the kinds of SQLSTATEs, by all five characters or the first two.
var kinds = map[string]driver.Kind{
	"08": driver.Disconnected, "28": driver.Denied, "42501": driver.Denied,
	"42P01": driver.NotFound, "3D000": driver.NotFound, "3F000": driver.NotFound,
	"53": driver.Throttled, "57014": driver.Timeout, "57": driver.Disconnected, "25006": driver.Disconnected,
	"55P03": driver.Throttled, "40": driver.Throttled, "0A": driver.Unsupported, "58": driver.Rejected,
}

// classify returns the kind of an error of the client library or of the server.
func classify(err error) driver.Kind {
	var server *pgconn.PgError
	switch {
	case errors.As(err, &server) && len(server.Code) == 5:
		for _, code := range []string{server.Code, server.Code[:2]} {
			if kind, ok := kinds[code]; ok {
				return kind
			}
		}
		return driver.Rejected
	case errors.As(err, new(doubtError)):
		return driver.Timeout
	case errors.Is(err, errSettled),
		errors.Is(err, errLarge),
		errors.Is(err, errWeaker),
		errors.As(err, new(*differenceError)),
		errors.As(err, new(*missingError)):
		return driver.Rejected
	case errors.Is(err, pgconn.ErrConnClosed):
		return driver.Disconnected
	}
	return driver.Unknown
}

// code reports whether the server's answer was one of these SQLSTATEs.
func code(err error, codes ...string) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		for _, c := range codes {
			if server.Code == c {
				return true
			}
		}
	}
	return false
}
