package pulsar

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/apache/pulsar-client-go/pulsar/log"
)

// journal is the client's logger. It writes nothing and keeps the last failure of a connection,
// because the client's errors contain only "connection error".
type journal struct {
	log.Logger
	last    atomic.Pointer[error]
	refused chan struct{} // holds a token after a broker has refused a connection
}

func newJournal() *journal {
	return &journal{Logger: log.DefaultNopLogger(), refused: make(chan struct{}, 1)}
}

func (j *journal) SubLogger(log.Fields) log.Logger { return j }

func (j *journal) WithError(err error) log.Entry { return noting{j.Logger.WithError(err), j, err} }

// refusal begins the client's line for a broker that refuses it.
const refusal = "Failed to establish connection with broker:"

func (j *journal) Warnf(format string, args ...any) {
	if strings.HasPrefix(format, refusal) {
		j.refuse(strings.Trim(strings.TrimPrefix(fmt.Sprintf(format, args...), refusal), " '"))
	}
}

func (j *journal) refuse(answer string) {
	j.note(&refusedError{answer})
	select {
	case j.refused <- struct{}{}:
	default:
	}
}

func (j *journal) note(err error) { j.last.Store(&err) }

// alert begins package tls's error of the server's alert. The client keeps its text only.
const alert = "remote error: tls:"

// failed stores the reason of a failed connection.
func (j *journal) failed(err error) {
	if _, reason, ok := strings.Cut(err.Error(), alert); ok {
		j.refuse(alert + reason)
	} else {
		j.note(err)
	}
}

// explain adds the stored reason to an error that has none.
func (j *journal) explain(err error) error {
	if err == nil || !strings.Contains(err.Error(), "connection error") {
		return err
	}
	if cause := j.last.Load(); cause != nil {
		return &causedError{err, *cause}
	}
	return err
}

// noting is a line of the log with an error.
type noting struct {
	log.Entry
	j   *journal
	err error
}

// connecting has the lines for a failed connection.
var connecting = []string{
	"Failed to connect to broker", "Failed to perform initial handshake", "Failed to configure TLS",
}

func (n noting) Warn(args ...any) {
	text := fmt.Sprint(args...)
	for _, line := range connecting {
		if strings.HasPrefix(text, line) {
			n.j.failed(n.err)
			return
		}
	}
}
