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
	members  int // that a write waits for; not where majority
	majority bool
	journal  bool
}

// maxMembers is how many a replica set may have.
const maxMembers = 50

// parseConcern reads the options w and journal.
func parseConcern(o driver.Values) (c concern, err error) {
	w := o.String("w")
	c.journal, c.majority = o.Bool("journal"), w == writeconcern.WCMajority
	if c.majority {
		return c, nil
	}
	if c.members, err = strconv.Atoi(w); err != nil || c.members < 0 || c.members > maxMembers {
		return c, &driver.OptionError{Name: "w", Err: fmt.Errorf("%q is not majority, or a number from 0 to %d", w, maxMembers)}
	}
	if c.members == 0 && c.journal {
		return c, &driver.OptionError{Name: "w", Err: errors.New("0 waits for no answer, and the option \"journal\" asks for one")}
	}
	return c, nil
}

// of is the concern in the client's form.
func (c concern) of() *writeconcern.WriteConcern {
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

// proof is what a write proves that is answered.
func (c concern) proof(t cluster) driver.Proof {
	if !c.majority && c.members == 0 {
		return driver.Proof{Confirm: driver.Unconfirmed, How: "nobody is known to have it: the server does not answer (w=0)"}
	}
	where := "in memory"
	switch {
	case c.journal:
		where = "in the journal on disk"
	case c.majority && t.kind != standalone:
		where = "on disk if the servers' settings say so"
	}
	accepted := func(who string) driver.Proof {
		return driver.Proof{Confirm: driver.Accepted, How: fmt.Sprintf("%s, %s (%v)", who, where, c)}
	}
	switch {
	case t.kind == standalone:
		return accepted("one server")
	case t.kind == sharded:
		return accepted("at least one member of a shard, of which mongos does not tell how many there are")
	case t.members == 1:
		return accepted("the only member with data of replica set " + t.set)
	case c.majority:
		return driver.Proof{Confirm: driver.Replicated, How: fmt.Sprintf("a majority of the %d members with data of replica set %s, %s (%v)", t.members, t.set, where, c)}
	case c.members == 1:
		return accepted("the primary of replica set " + t.set)
	}
	return driver.Proof{Confirm: driver.Replicated, How: fmt.Sprintf("%d of the %d members with data of replica set %s, %s (%v)", c.members, t.members, t.set, where, c)}
}

// Proof implements [driver.Prover].
func (c *conn) Proof(_ context.Context, config driver.ProducerConfig, _ *driver.TopicSpec) driver.Proof {
	w, err := parseConcern(config.Options)
	if err != nil {
		return driver.Proof{Confirm: driver.Unconfirmed, How: err.Error()}
	}
	return w.proof(c.monitor.cluster())
}

// concernError is that the server has a write, and that it is not known to be where the write concern wants it.
type concernError struct{ *mongo.WriteConcernError }

// Unwrap gives the error in a form that has codes.
func (e *concernError) Unwrap() error {
	return mongo.WriteException{WriteConcernError: e.WriteConcernError}
}
