package amqp1

import (
	"context"
	"sync"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// answers are the messages that were sent and that the broker has not answered for. They are awaited one after the other, as the client library tells of
// each alone: one whose answer comes before an earlier one's is done when that has come too.
type answers struct {
	exchange bool // they are a RabbitMQ exchange's

	mu    sync.Mutex
	due   []answer
	ended bool
	came  chan struct{} // holds one token while there may be something in due
}

// answer is that of one message.
type answer struct {
	receipt amqp.SendReceipt
	done    driver.Done
	i       int
}

func (a *answers) add(one answer) {
	a.mu.Lock()
	a.due = append(a.due, one)
	first := len(a.due) == 1
	a.mu.Unlock()
	if first {
		a.signal()
	}
}

// end says that no more are added.
func (a *answers) end() {
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	a.signal()
}

func (a *answers) signal() {
	select {
	case a.came <- struct{}{}:
	default:
	}
}

// take gives what is due, whose place spare takes, and reports whether nothing can come after that.
func (a *answers) take(spare []answer) (all []answer, ended bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all, a.due = a.due, spare[:0]
	return all, a.ended
}

// await calls done for each message, with life's cause where it ends first, and returns when none can come any more.
func (a *answers) await(life context.Context) {
	var all []answer
	for {
		clear(all) // they must not live on here
		var ended bool
		all, ended = a.take(all)
		if len(all) == 0 {
			if ended {
				return
			}
			<-a.came
			continue
		}
		for i := range all {
			one := &all[i]
			one.done(one.i, one.await(life, a.exchange))
		}
	}
}

func (a *answer) await(life context.Context, exchange bool) error {
	state, err := a.receipt.Wait(life)
	if err == nil {
		return outcome(state, exchange)
	}
	if cause := context.Cause(life); cause != nil {
		return cause
	}
	return err
}
