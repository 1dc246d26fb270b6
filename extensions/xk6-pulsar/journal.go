package pulsar

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/apache/pulsar-client-go/pulsar/log"
)

// journal is the client's logger. It writes nothing: it keeps why the last connection failed, of which the client's errors say no more than
// "connection error", and tells consumers when they are given up.
type journal struct {
	log.Logger
	last    atomic.Pointer[error]
	refused chan struct{} // holds one token from when a broker has refused a connection
	lost    sync.Map      // by the name of a consumer, what is called when the client gives it up
}

func newJournal() *journal {
	return &journal{Logger: log.DefaultNopLogger(), refused: make(chan struct{}, 1)}
}

func (j *journal) SubLogger(fields log.Fields) log.Logger {
	if name, ok := fields["name"].(string); ok {
		return &consumerJournal{j, name}
	}
	return j
}

func (j *journal) WithError(err error) log.Entry { return noting{j.Logger.WithError(err), j, err} }

// refusal is how the client begins to say that a broker does not take it.
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

// alert begins what package tls says of the other side's alert, of which the client keeps the text alone.
const alert = "remote error: tls:"

// failed notes why a connection could not be made.
func (j *journal) failed(err error) {
	if _, reason, ok := strings.Cut(err.Error(), alert); ok {
		j.refuse(alert + reason)
	} else {
		j.note(err)
	}
}

// explain adds what was noted to an error that only says that there is no connection.
func (j *journal) explain(err error) error {
	if err == nil || !strings.Contains(err.Error(), "connection error") {
		return err
	}
	if cause := j.last.Load(); cause != nil {
		return &causedError{err, *cause}
	}
	return err
}

// consumerJournal is the logger of what the client has for one partition of a consumer.
type consumerJournal struct {
	*journal
	name string
}

// givenUp is what the client writes when it connects a consumer no more, of which it tells nobody.
const givenUp = "Topic Not Found."

func (j *consumerJournal) Warn(args ...any) {
	if fmt.Sprint(args...) != givenUp {
		return
	}
	if lost, ok := j.lost.Load(j.name); ok {
		lost.(func())() //nolint:forcetypeassert // nothing else is stored there
	}
}

// noting is a line of the log about an error.
type noting struct {
	log.Entry
	j   *journal
	err error
}

// connecting are the lines that are about a connection which could not be made.
var connecting = []string{"Failed to connect to broker", "Failed to perform initial handshake", "Failed to configure TLS"}

func (n noting) Warn(args ...any) {
	text := fmt.Sprint(args...)
	for _, line := range connecting {
		if strings.HasPrefix(text, line) {
			n.j.failed(n.err)
			return
		}
	}
}
