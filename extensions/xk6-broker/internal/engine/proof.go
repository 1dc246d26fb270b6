package engine

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Created notes that this test made the topic, and as what. For the producers that are open it is asked anew what a confirmation proves: the
// topic may have been another one.
func (r *Run) Created(t *Topic, as driver.TopicSpec) {
	if !t.is(&as) {
		return
	}
	for _, p := range r.opened() {
		if p.topic == t {
			p.prove()
		}
	}
}

// Deleted notes that this test deleted the topic: what comes to be under its name may be another one.
func (t *Topic) Deleted() { t.is(nil) }

// is notes what this test made the topic as, nil where it is gone, and tells whether that is new. What had been proven stays in the result.
func (t *Topic) is(created *driver.TopicSpec) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if reflect.DeepEqual(t.created, created) {
		return false
	}
	t.created = created
	if created != nil {
		t.disorder(nil, reorderings(t.Address.Driver, driver.OnTopic), created.Options)
		if given(t.Address.Driver, driver.OnTopic, created.Options, func(o driver.Option) bool { return o.Spends != "" && created.Options.String(o.Name) == o.Spends }) {
			t.spends.Store(true)
		}
	}
	t.proven = slices.AppendSeq(t.proven, maps.Values(t.proofs))
	clear(t.proofs)
	return true
}

// vanished notes that the broker says there is no such topic. Where this test has made it, somebody else has deleted it: what comes to be under its
// name may be another one.
func (r *Run) vanished(t *Topic) {
	if !t.is(nil) {
		return
	}
	for _, p := range r.opened() {
		if _, asks := p.conn.(driver.TopicDescriber); p.topic == t && !asks { // a broker that tells is asked when the topic is there again
			p.prove()
		}
	}
}

// provedAtOnce is of how many producers it is asked at a time what their confirmations prove, while the test runs.
const provedAtOnce = 100

// ProveAgain asks of some of the producers, the next ones each time, what their confirmations prove now.
func (r *Run) ProveAgain(ctx context.Context) {
	r.mu.Lock()
	if r.finished {
		r.mu.Unlock()
		return
	}
	r.proving.Add(1) // the end waits for what has begun
	defer r.proving.Done()
	var some []*Publisher
	for range min(provedAtOnce, len(r.publishers)) {
		some = append(some, r.publishers[r.proved%len(r.publishers)])
		r.proved++
	}
	r.mu.Unlock()
	r.proveAgain(ctx, some, backlogTimeout)
}

// proveAgain asks what a confirmation proves once more, where the broker can say what the topic is, or whether it is still what this test made it as, and
// was last asked before since: another one than this test may have deleted it, and created it otherwise. Of a topic that is gone nothing more is confirmed. A
// producer that finds it out for itself is always asked: its server may be set otherwise since.
func (p *Publisher) proveAgain(ctx context.Context, since int64) {
	t := p.topic
	describer, tells := p.conn.(driver.TopicDescriber)
	_, proves := p.conn.(driver.Prover)
	_, itself := p.producer.(driver.Prover)
	if !proves && !itself {
		return
	}
	key := p.sort(itself)
	t.mu.Lock()
	before := t.proofs[key] // nil where the topic has vanished since
	ok := (itself || tells || t.created != nil) && (before == nil || before.at < since)
	if ok && before != nil {
		before.at = driver.Now() // whoever comes meanwhile need not ask
	}
	t.mu.Unlock()
	if !ok {
		return
	}
	if before != nil {
		select {
		case <-before.known:
		case <-ctx.Done():
			return
		}
	}
	if tells {
		if _, err := describer.DescribeTopic(ctx, t.Name); err != nil {
			return
		}
	}
	t.mu.Lock()
	if before != nil && t.proofs[key] == before {
		delete(t.proofs, key)
		if !slices.ContainsFunc(t.proven, func(p *proving) bool { return p.has(before.Proof) }) {
			t.proven = append(t.proven, before)
		}
	}
	t.mu.Unlock()
	p.prove()
}

// has tells whether it is known, and that.
func (p *proving) has(proof result.Proof) bool {
	select {
	case <-p.known:
		return p.Proof == proof
	default:
		return false
	}
}

// proving is what is being found out of a sort of producers.
type proving struct {
	result.Proof

	known chan struct{} // closed when it is
	at    int64         // when it was asked for, ns since the Unix epoch; guarded by the topic's lock
}

// prove asks what a confirmation proves for such a producer: each one that finds it out for itself, and else once for all of the same options, while
// the topic is the same. Nobody who sends waits for the answer.
func (p *Publisher) prove() *proving {
	t := p.topic
	prover, known := p.producer.(driver.Prover)
	key := p.sort(known)
	if !known {
		prover, known = p.conn.(driver.Prover)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if asked, ok := t.proofs[key]; ok {
		return asked
	}
	asked := &proving{known: make(chan struct{}), at: driver.Now()}
	t.proofs[key] = asked
	if !known {
		asked.Confirm = t.Address.Driver.Features.Confirm.String()
		close(asked.known)
		return asked
	}
	created := t.created
	p.run.proving.Go(func() {
		defer close(asked.known)
		ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
		defer cancel()
		proof := prover.Proof(ctx, p.config, created)
		asked.Confirm, asked.How = proof.Confirm.String(), proof.How
		if proof.Routed {
			t.routed.Store(true)
		}
	})
	return asked
}

// sort tells producers apart whose confirmations may prove different things.
func (p *Publisher) sort(itself bool) string {
	if itself {
		return fmt.Sprintf("%p", p)
	}
	return fmt.Sprint(p.config.Options)
}

// proofHolds is for how long what a confirmation proves is taken to hold.
const proofHolds = time.Second

// Proof is what a confirmation proves, once that is known.
func (s *Sender) Proof(ctx context.Context) (result.Proof, error) {
	s.pub.proveAgain(ctx, driver.Now()-int64(proofHolds))
	asked := s.pub.prove()
	select {
	case <-asked.known:
		return asked.Proof, nil
	case <-ctx.Done():
		return result.Proof{}, ctx.Err()
	}
}
