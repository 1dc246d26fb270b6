package engine

import (
	"context"
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// proof is what confirmations prove for some producers of a topic: asked when the first of them
// opens, and again at the end.
type proof struct {
	result.Proof

	done  chan struct{} // closed when Proof is set
	later *result.Proof // at the end; nil if it was not asked again
}

// prove asks what a confirmation proves: for each producer that finds out by itself, and else once
// for all of the same options. Nothing waits for the answer.
func (p *Publisher) prove() *proof {
	key := fmt.Sprint(p.config.Options)
	if _, own := p.producer.(driver.Prover); own {
		key = fmt.Sprintf("%p", p)
	}
	p.topic.mu.Lock()
	defer p.topic.mu.Unlock()
	if asked, ok := p.topic.proofs[key]; ok {
		return asked
	}
	asked := &proof{done: make(chan struct{})}
	p.topic.proofs[key] = asked
	created := p.topic.created
	go func() {
		defer close(asked.done)
		asked.Proof = p.askProof(context.Background(), created)
	}()
	return asked
}

// askProof asks the driver. Without an answer of its own, it is what the driver's features claim.
func (p *Publisher) askProof(ctx context.Context, created *driver.TopicSpec) result.Proof {
	prover, ok := p.producer.(driver.Prover)
	if !ok {
		prover, ok = p.conn.(driver.Prover)
	}
	if !ok {
		return result.Proof{Confirm: p.driver.Features.Confirm.String()}
	}
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	is := prover.Proof(ctx, p.config, created)
	if is.Routed {
		p.topic.selected.Store(true)
	}
	return result.Proof{Confirm: is.Confirm.String(), How: is.How}
}

// proveAgain asks once more at the end, because settings may have changed. It asks nothing about a
// topic that is gone.
func (p *Publisher) proveAgain(ctx context.Context) {
	t := p.topic
	select {
	case <-p.proof.done:
	case <-ctx.Done():
		return
	}
	if describer, ok := p.conn.(driver.TopicDescriber); ok {
		if _, err := describer.DescribeTopic(ctx, t.Name); err != nil {
			return
		}
	}
	t.mu.Lock()
	created, skip := t.created, p.proof.later != nil || len(t.removed) > 0
	if !skip {
		p.proof.later = &result.Proof{}
	}
	t.mu.Unlock()
	if skip {
		return
	}
	is := p.askProof(ctx, created)
	t.mu.Lock()
	defer t.mu.Unlock()
	*p.proof.later = is
}

// Proof returns what a confirmation proves.
func (s *Sender) Proof(ctx context.Context) (result.Proof, error) {
	select {
	case <-s.pub.proof.done:
		return s.pub.proof.Proof, nil
	case <-ctx.Done():
		return result.Proof{}, ctx.Err()
	}
}

// proven lists what confirmations proved. The lock is held.
func (t *Topic) proven() (all []result.Proof) {
	for _, p := range t.proofs {
		select {
		case <-p.done:
			all = append(all, p.Proof)
		default:
		}
		if p.later != nil && p.later.Confirm != "" {
			all = append(all, *p.later)
		}
	}
	return all
}
