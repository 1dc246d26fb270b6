package mongodb

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// concern is a write concern.
type concern struct {
	members  int // that a write waits for; 0 with majority
	majority bool
	journal  bool
}

// maxMembers is the largest number of members of a replica set.
const maxMembers = 50

// parseConcern reads the options w and journal.
func parseConcern(o driver.Values) (c concern, err error) {
	w := o.String("w")
	c.journal, c.majority = o.Bool("journal"), w == writeconcern.WCMajority
	if c.majority {
		return c, nil
	}
	if c.members, err = strconv.Atoi(w); err != nil || c.members < 0 || c.members > maxMembers {
		err = fmt.Errorf("%q is not majority, or a number from 0 to %d", w, maxMembers)
		return c, &driver.OptionError{Name: "w", Err: err}
	}
	if c.members == 0 && c.journal {
		err = errors.New("0 waits for no answer, and the option \"journal\" asks for one")
		return c, &driver.OptionError{Name: "w", Err: err}
	}
	return c, nil
}

// writeConcern returns the concern in the client's form.
func (c concern) writeConcern() *writeconcern.WriteConcern {
	w := &writeconcern.WriteConcern{W: c.members}
	if c.majority {
		w.W = writeconcern.WCMajority
	}
	if c.journal {
		w.Journal = &c.journal
	}
	return w
}

func (c concern) String() string {
	text := "w=" + strconv.Itoa(c.members)
	if c.majority {
		text = "w=" + writeconcern.WCMajority
	}
	if c.journal {
		text += ", journal"
	}
	return text
}

// proof returns what an answer to a write proves.
func (c concern) proof(t cluster) driver.Proof {
	if !c.majority && c.members == 0 {
		return driver.Proof{Confirm: driver.Unconfirmed, How: "not known to be stored: the server does not answer (w=0)"}
	}
	where := "in memory"
	switch {
	case c.journal:
		where = "in the journal on disk"
	case c.majority && t.kind != standalone:
		where = "on disk if the servers' settings say so"
	}
	confirm := driver.Accepted
	var stored string
	switch {
	case t.kind == standalone:
		stored = "one server"
	case t.kind == sharded:
		stored = "at least one member of a shard, whose number mongos does not report"
	case t.members == 1:
		stored = "the only member with data of replica set " + t.set
	case c.majority:
		confirm = driver.Replicated
		stored = fmt.Sprintf("a majority of the %d members with data of replica set %s", t.members, t.set)
	case c.members == 1:
		stored = "the primary of replica set " + t.set
	default:
		confirm = driver.Replicated
		stored = fmt.Sprintf("%d of the %d members with data of replica set %s", c.members, t.members, t.set)
	}
	return driver.Proof{Confirm: confirm, How: fmt.Sprintf("%s, %s (%v)", stored, where, c)}
}

// Proof implements [driver.Prover].
func (c *conn) Proof(_ context.Context, config driver.ProducerConfig, _ *driver.TopicSpec) driver.Proof {
	w, err := parseConcern(config.Options)
	if err != nil {
		return driver.Proof{Confirm: driver.Unconfirmed, How: err.Error()}
	}
	return w.proof(c.monitor.cluster())
}

// concernError reports a write that the server has, and perhaps not all members that the write
// concern asks for.
type concernError struct{ *mongo.WriteConcernError }

// Unwrap returns the error in a form that has codes.
func (e *concernError) Unwrap() error {
	return mongo.WriteException{WriteConcernError: e.WriteConcernError}
}
