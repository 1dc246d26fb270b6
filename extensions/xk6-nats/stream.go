package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// streamConn is a connection of the driver "nats-jetstream".
type streamConn struct {
	*conn
	js  jetstream.JetStream
	api string // prefix of the subjects of the JetStream API
}

func openStream(ctx context.Context, t driver.Target) (driver.Conn, error) {
	c, err := dial(ctx, t)
	if err != nil {
		return nil, err
	}
	s := streamConn{conn: c, api: jetstream.DefaultAPIPrefix}
	if domain := t.Options.String("domain"); domain != "" {
		s.api = "$JS." + domain + ".API."
		s.js, err = jetstream.NewWithDomain(c.nc, domain)
	} else {
		s.js, err = jetstream.New(c.nc)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return s, nil
}

// As implements [driver.Unwrapper] for **nats.Conn and *jetstream.JetStream.
func (c streamConn) As(target any) bool {
	return driver.As(target, c.js) || c.conn.As(target)
}

// nameFor returns the name of a stream or durable consumer for a topic or group, without the
// characters that names cannot have.
func nameFor(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(".*>/\\ \t\r\n", r) {
			return '_'
		}
		return r
	}, s)
}

// retentions are the retention policies by option.
var retentions = map[string]jetstream.RetentionPolicy{
	retainLimits:    jetstream.LimitsPolicy,
	retainWorkQueue: jetstream.WorkQueuePolicy,
	retainInterest:  jetstream.InterestPolicy,
}

// CreateTopic implements [driver.Admin]: a stream whose only subject is the topic.
func (c streamConn) CreateTopic(ctx context.Context, s driver.TopicSpec) (err error) {
	ctx, done := c.ask(ctx)
	defer done(&err)
	config := jetstream.StreamConfig{
		Name:       nameFor(s.Name),
		Subjects:   []string{s.Name},
		Replicas:   s.Replicas,
		MaxAge:     s.Options.Duration("maxAge"),
		MaxBytes:   s.Options.Int("maxBytes"),
		MaxMsgs:    s.Options.Int("maxMessages"),
		Duplicates: s.Options.Duration("duplicates"),
		Retention:  retentions[s.Options.String("retention")],
	}
	if s.Options.String("storage") == storageMemory {
		config.Storage = jetstream.MemoryStorage
	}
	if s.Options.String("discard") == "new" {
		config.Discard = jetstream.DiscardNew
	}
	if s.Options.String("persist") == "async" {
		config.PersistMode = jetstream.AsyncPersistMode
	}
	if _, err = c.js.CreateStream(ctx, config); err == nil {
		return nil
	}
	// A stream with other settings exists. A stream of another topic with this name is an error.
	if name, lookup := c.js.StreamNameBySubject(ctx, s.Name); lookup == nil && name != "" {
		return nil
	}
	return err
}

// DescribeTopic implements [driver.TopicDescriber].
func (c streamConn) DescribeTopic(ctx context.Context, topic string) (info driver.TopicInfo, err error) {
	ctx, done := c.ask(ctx)
	defer done(&err)
	s, err := c.stream(ctx, topic)
	if err != nil {
		return info, err
	}
	config := s.CachedInfo().Config
	options := driver.Values{
		"storage": storageFile, "retention": retainLimits, "discard": "old", "persist": "default", "maxAge": config.MaxAge,
		"maxBytes": max(0, config.MaxBytes), "maxMessages": max(0, config.MaxMsgs), "duplicates": config.Duplicates,
	}
	if config.Storage == jetstream.MemoryStorage {
		options["storage"] = storageMemory
	}
	for name, policy := range retentions {
		if config.Retention == policy {
			options["retention"] = name
		}
	}
	if config.Discard == jetstream.DiscardNew {
		options["discard"] = "new"
	}
	if config.PersistMode == jetstream.AsyncPersistMode {
		options["persist"] = "async"
	}
	return driver.TopicInfo{Replicas: config.Replicas, Options: options}, nil
}

// stream returns the stream that keeps a topic, also of another program.
func (c streamConn) stream(ctx context.Context, topic string) (jetstream.Stream, error) {
	name, err := c.js.StreamNameBySubject(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("topic %q: %w", topic, err)
	}
	return c.js.Stream(ctx, name)
}

// DeleteTopic implements [driver.Admin]. It deletes only a stream that has no other subject.
func (c streamConn) DeleteTopic(ctx context.Context, topic string) (err error) {
	ctx, done := c.ask(ctx)
	defer done(&err)
	s, err := c.stream(ctx, topic)
	if err != nil {
		return err
	}
	if config := s.CachedInfo().Config; !slices.Equal(config.Subjects, []string{topic}) {
		return fmt.Errorf("%w: stream %s has other subjects than %q", jetstream.ErrStreamNameAlreadyInUse, config.Name, topic)
	}
	return c.js.DeleteStream(ctx, s.CachedInfo().Config.Name)
}

// PurgeTopic implements [driver.Admin].
func (c streamConn) PurgeTopic(ctx context.Context, topic string) (err error) {
	ctx, done := c.ask(ctx)
	defer done(&err)
	s, err := c.stream(ctx, topic)
	if err != nil {
		return err
	}
	return s.Purge(ctx, jetstream.WithPurgeSubject(topic))
}

// Backlog implements [driver.Backlogger]. Without a group, or before its first consumer, it counts
// the stream's messages of the topic.
func (c streamConn) Backlog(ctx context.Context, topic, group string) (b driver.Backlog, err error) {
	ctx, done := c.ask(ctx)
	defer done(&err)
	s, err := c.stream(ctx, topic)
	if err != nil {
		return b, err
	}
	if group != "" {
		k, err := s.Consumer(ctx, nameFor(group))
		if err == nil {
			info := k.CachedInfo()
			return driver.Backlog{
				Messages: int64(info.NumPending) + int64(
					info.NumAckPending,
				), Undelivered: int64(info.NumPending), //gosec:disable G115 -- counts, far below the limit
				// The server may be done with a message before the consumer has settled it.
				Estimate: info.Config.AckPolicy != jetstream.AckExplicitPolicy || info.Config.MaxDeliver == 1,
			}, nil
		}
		if !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return b, err
		}
	}
	info := s.CachedInfo()
	if slices.Equal(info.Config.Subjects, []string{topic}) {
		b.Messages = int64(info.State.Msgs) //gosec:disable G115 -- a count, far below the limit
		return b, nil
	}
	if info, err = s.Info(ctx, jetstream.WithSubjectFilter(topic)); err != nil {
		return b, err
	}
	for _, n := range info.State.Subjects {
		b.Messages += int64(n) //gosec:disable G115 -- a count, far below the limit
	}
	return b, nil
}
