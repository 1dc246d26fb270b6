package engine

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// backlog is what a broker said that it holds for a group.
type backlog struct {
	driver.Backlog
	known    bool
	estimate bool
	at       int64 // ns since the Unix epoch
}

// told is what a result keeps of it.
func (b *backlog) told() account.Backlog {
	return account.Backlog{Messages: b.Messages, Undelivered: b.Undelivered, Dropped: b.Dropped}
}

// exact tells whether what is missing can be judged by it.
func (b *backlog) exact() bool { return b.known && !b.estimate }

// Backlog asks the broker how many messages of a topic a group has not settled, by the connections of its members where it has some; conn is for groups
// that have none.
func (r *Run) Backlog(ctx context.Context, t *Topic, name string, conn driver.Conn) (int64, error) {
	t.mu.Lock()
	g := t.groups[name]
	t.mu.Unlock()
	conns := []driver.Conn{conn}
	if g != nil {
		conns = g.connections(conn)
	}
	b, err := t.askAll(ctx, name, conns)
	return b.Messages, err
}

// ask asks the broker what it has for the group. It keeps nothing for a subscriber.
func (g *group) ask(ctx context.Context) backlog {
	if g.subscriber {
		return backlog{}
	}
	g.topic.mu.Lock()
	conn := g.topic.conn
	g.topic.mu.Unlock()
	b, _ := g.topic.askAll(ctx, g.name, g.connections(conn))
	return b
}

// connections are those of the members that are there, or the one of the last that was, or else another.
func (g *group) connections(other driver.Conn) []driver.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case len(g.conns) > 0:
		return slices.Collect(maps.Keys(g.conns))
	case g.conn != nil:
		return []driver.Conn{g.conn}
	}
	return []driver.Conn{other}
}

func (t *Topic) ask(ctx context.Context, group string) backlog {
	t.mu.Lock()
	conn := t.conn
	t.mu.Unlock()
	b, _ := t.askAll(ctx, group, []driver.Conn{conn})
	return b
}

// askAll asks by all connections, one after another, where one does not speak for all: each first tells the broker what it has to tell of what it has
// settled, and so the last answer is the one that counts. Where there are several it is an estimate, as what they do meanwhile is not known.
func (t *Topic) askAll(ctx context.Context, group string, conns []driver.Conn) (backlog, error) {
	all := backlog{estimate: t.Address.Driver.Features.BacklogEstimated || len(conns) > 1, at: driver.Now()}
	if t.Address.Driver.Features.BacklogWhole {
		conns = conns[:1]
	}
	for _, conn := range conns {
		b, ok := conn.(driver.Backlogger)
		if !ok {
			return backlog{}, errors.ErrUnsupported
		}
		said, err := b.Backlog(ctx, t.Name, group)
		if err != nil {
			return backlog{}, err
		}
		all.Backlog, all.known, all.estimate = said, true, all.estimate || said.Estimate
	}
	return all, nil
}
