package engine

import (
	"context"
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine/summary"
)

// prove returns the meaning of a confirmation, when the producer opens and at the end. It asks each
// producer that is a prover itself, else once for all of the same options.
func (p *Publisher) prove(ctx context.Context, when string) summary.Proof {
	key := fmt.Sprint(when, p.config.Options)
	prover, ok := p.producer.(driver.Prover)
	if ok {
		key = fmt.Sprintf("%s%p", when, p)
	} else {
		prover, ok = p.conn.(driver.Prover)
	}
	t := p.topic
	t.mu.Lock()
	proof, found := t.proofs[key]
	created := t.created
	t.mu.Unlock()
	if found {
		return proof
	}
	proof.Confirm = p.driver.Features.Confirm.String()
	if ok {
		ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
		defer cancel()
		answer := prover.Proof(ctx, p.config, created)
		proof = summary.Proof{Confirm: answer.Confirm.String(), How: answer.How}
		if answer.Routed {
			t.selected.Store(true)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.proofs[key] = proof
	return proof
}

// proveAgain asks once more at the end, because settings may have changed, unless the topic is gone.
func (p *Publisher) proveAgain(ctx context.Context) error {
	p.topic.mu.Lock()
	removed := len(p.topic.removed) > 0
	p.topic.mu.Unlock()
	if !removed {
		p.prove(ctx, "at the end: ")
	}
	return nil
}

// Proof returns the meaning of a confirmation.
func (s *Sender) Proof() summary.Proof { return s.pub.proof }
