package engine

import (
	"context"
	"errors"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// backlogTimeout bounds a question to a broker.
const backlogTimeout = 5 * time.Second

// backlog is a broker's answer about a group.
type backlog struct {
	driver.Backlog
	at int64 // ns since the Unix epoch; 0 if there is no answer
}

// GroupKey names a group of consumers of a run.
type GroupKey struct{ Broker, Driver, Topic, Group string }

// Backlog asks the broker for the number of messages of a topic that a group has not settled. conn
// is for groups without members in this process.
func (r *Run) Backlog(ctx context.Context, t *Topic, name string, conn driver.Conn) (int64, error) {
	conns := []driver.Conn{conn}
	for _, g := range t.everyGroup() {
		if g.name == name && !g.subscriber {
			conns = g.connections()
		}
	}
	b, err := t.ask(ctx, name, conns)
	return b.Messages, err
}

// Backlogs asks the brokers for the number of messages that each group has not settled. Groups
// without an answer are left out.
func (r *Run) Backlogs(ctx context.Context) map[GroupKey]int64 {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	backlogs := map[GroupKey]int64{}
	for _, g := range r.groups() {
		if b := g.ask(ctx); b.at > 0 {
			backlogs[g.key()] = b.Messages
		}
	}
	return backlogs
}

// askBacklogs asks the broker for its backlogs at the end.
func (t *Topic) askBacklogs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	for _, g := range t.everyGroup() {
		b := g.ask(ctx)
		g.final.Store(&b)
	}
}

// ask asks the broker for the group's backlog, and keeps the answer.
func (g *group) ask(ctx context.Context) backlog {
	if g.subscriber { // the broker keeps nothing for it
		return backlog{}
	}
	b, _ := g.topic.ask(ctx, g.name, g.connections())
	g.backlog.Store(&b)
	return b
}

// exhausted reports whether the broker has nothing for the group.
func (g *group) exhausted(ctx context.Context) bool {
	b := g.ask(ctx)
	return b.at > 0 && b.Messages == 0
}

// ask asks by one connection after another, unless one answers for all: each first passes on its
// settlements, so the last answer counts. With several it is an estimate.
func (t *Topic) ask(ctx context.Context, group string, conns []driver.Conn) (b backlog, err error) {
	f := t.Address.Driver.Features
	estimate := len(conns) > 1
	if f.BacklogWhole {
		conns = conns[:1]
	}
	for _, conn := range conns {
		asked, ok := conn.(driver.Backlogger)
		if !ok {
			return backlog{}, errors.ErrUnsupported
		}
		if b.Backlog, err = asked.Backlog(ctx, t.Name, group); err != nil {
			return backlog{}, err
		}
		estimate = estimate || b.Estimate
	}
	b.Estimate, b.at = estimate, driver.Now()
	return b, nil
}

// Counts returns the counts of every group so far, without the fates of missing messages.
func (r *Run) Counts() map[GroupKey]account.Account {
	counts := map[GroupKey]account.Account{}
	for _, g := range r.groups() {
		sum := counts[g.key()]
		sum.Tally.Add(g.track.Tally())
		sum.Unordered = g.topic.unordered.Load()
		counts[g.key()] = sum
	}
	return counts
}
