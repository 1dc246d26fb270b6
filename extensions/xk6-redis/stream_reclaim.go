package redis

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// A consumer that closes assigns its messages to a consumer of this name, with a very long idle
// time. A claim moves an entry only if it is still as idle, so no two consumers have it.
const (
	nobody   = "xk6-broker-nobody"
	idleNow  = 1000 * time.Hour // how idle it is made
	idleThen = 900 * time.Hour  // how idle it must be
)

// page is how many pending entries are looked at together.
const page = 1000

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// pendingOf lists pending entries from an id on, with a minimum idle time, of one consumer or of
// all.
func (s *streamConsumer) pendingOf(
	ctx context.Context, consumer string, idle time.Duration, from string,
) ([]redis.XPendingExt, error) {
	return s.client.XPendingExt(ctx, &redis.XPendingExtArgs{
		Stream: s.config.Topic, Group: s.config.Group, Idle: idle, Start: from, End: "+", Count: page, Consumer: consumer,
	}).Result()
}

// reclaim takes over, every claimInterval, messages that other consumers gave back or have held for
// longer than minIdle.
func (s *streamConsumer) reclaim(ctx context.Context) {
	interval, minIdle := s.config.Options.Duration("claimInterval"), s.config.Options.Duration("minIdle")
	tick := time.NewTicker(interval)
	defer tick.Stop()
	// Looking for idle entries costs the server as much as there are pending ones, so it is rarer.
	rarely := max(1, int(minIdle/10/interval))
	for n := 0; ; n++ {
		// An error here is also one of Receive, which returns it.
		_ = s.look(ctx, n%rarely == 0, minIdle)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *streamConsumer) look(ctx context.Context, idle bool, minIdle time.Duration) error {
	sum, err := s.client.XPending(ctx, s.config.Topic, s.config.Group).Result() // whose cost is the number of consumers
	if err != nil || sum.Count == 0 {
		return err
	}
	if sum.Consumers[nobody] > 0 {
		if err := s.takeOver(ctx, nobody, idleThen); err != nil {
			return err
		}
	}
	if idle {
		return s.takeOver(ctx, "", minIdle)
	}
	return nil
}

// takeOver claims entries that are not here, as many as there is room for.
func (s *streamConsumer) takeOver(ctx context.Context, consumer string, idle time.Duration) error {
	room := s.room.Free()
	for from := "-"; room > 0; {
		found, err := s.pendingOf(ctx, consumer, idle, from)
		if err != nil {
			return err
		}
		wanted := s.absent(found)
		n, err := s.claim(ctx, wanted[:min(len(wanted), room)], idle)
		if err != nil || len(found) < page {
			return err
		}
		room -= n
		from = "(" + found[len(found)-1].ID
	}
	return nil
}

// absent returns the entries that are not with this consumer.
func (s *streamConsumer) absent(found []redis.XPendingExt) (wanted []redis.XPendingExt) {
	here := map[string]bool{}
	for _, d := range s.here() {
		here[d.id] = true
	}
	for _, p := range found {
		if !here[p.ID] {
			wanted = append(wanted, p)
		}
	}
	return wanted
}

// claim claims entries that are still as idle, and receives them. It uses a wire, because the
// client library does not keep the order of fields, nor two of one name.
func (s *streamConsumer) claim(ctx context.Context, wanted []redis.XPendingExt, idle time.Duration) (int, error) {
	if len(wanted) == 0 {
		return 0, nil
	}
	n := 0
	attempts := map[string]int64{}
	args := []string{"XCLAIM", s.config.Topic, s.config.Group, s.me, milliseconds(idle)}
	for _, p := range wanted {
		args = append(args, p.ID)
		attempts[p.ID] = p.RetryCount
	}
	err := s.out.do(ctx, appendCommand(nil, args...), 1, func(r reader, _ int) error {
		return r.entries(s.config.Topic, func(d *delivery) {
			d.message.Attempt = int32(attempts[d.id] + 1) //gosec:disable G115 -- deliveries
			s.put(d)
			n++
		})
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// recoverLost claims the messages that the server sent over a broken connection.
func (s *streamConsumer) recoverLost(ctx context.Context) error {
	for from := "-"; ; {
		found, err := s.pendingOf(ctx, s.me, 0, from)
		if err != nil {
			return err
		}
		if _, err = s.claim(ctx, s.absent(found), 0); err != nil || len(found) < page {
			return err
		}
		from = "(" + found[len(found)-1].ID
	}
}

// giveBack assigns unsettled messages to the consumer xk6-broker-nobody and leaves the group.
// Messages that were not received count as not delivered.
func (s *streamConsumer) giveBack(ctx context.Context) error {
	if err := s.recount(ctx); err != nil {
		return err
	}
	idle := milliseconds(idleNow)
	for {
		found, err := s.pendingOf(ctx, s.me, 0, "-")
		if err != nil {
			return err
		}
		if len(found) == 0 {
			break
		}
		all := make([]*delivery, len(found))
		for i, p := range found {
			all[i] = &delivery{id: p.ID}
		}
		if err := s.out.do(ctx, appendClaim(nil, s.config, nobody, all, "IDLE", idle, "JUSTID"), 1, ignore); err != nil {
			return err
		}
	}
	return s.client.XGroupDelConsumer(ctx, s.config.Topic, s.config.Group, s.me).Err()
}

// recount subtracts one delivery of messages that were not received.
func (s *streamConsumer) recount(ctx context.Context) error {
	byAttempt := map[int32][]*delivery{}
	for _, d := range s.Waiting() {
		byAttempt[d.message.Attempt] = append(byAttempt[d.message.Attempt], d)
	}
	var commands []byte
	for attempt, some := range byAttempt {
		commands = appendClaim(commands, s.config, s.me, some, "RETRYCOUNT", strconv.Itoa(int(attempt)-1), "JUSTID")
	}
	if len(commands) == 0 {
		return nil
	}
	return s.out.do(ctx, commands, len(byAttempt), ignore)
}
