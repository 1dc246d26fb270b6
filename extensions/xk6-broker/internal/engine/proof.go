package engine

import (
	"context"
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine/summary"
)

// proof is the meaning of a confirmation for some producers of a topic.
type proof struct {
	summary.Proof

	done chan struct{} // closed when the answer is there
}

// prove asks for the meaning of a confirmation, when the producer opens and at the end: for each
// producer that is a prover itself, else once for all of the same options. It does not wait.
func (p *Publisher) prove(when string) *proof {
	key := when + fmt.Sprint(p.config.Options)
	prover, ok := p.producer.(driver.Prover)
	if ok {
		key = fmt.Sprintf("%s%p", when, p)
	} else {
		prover, ok = p.conn.(driver.Prover)
	}
	t := p.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	if asked, ok := t.proofs[key]; ok {
		return asked
	}
	asked, created := &proof{done: make(chan struct{})}, t.created
	t.proofs[key] = asked
	if !ok {
		asked.Confirm = p.driver.Features.Confirm.String()
		close(asked.done)
		return asked
	}
	go func() {
		defer close(asked.done)
		ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
		defer cancel()
		answer := prover.Proof(ctx, p.config, created)
		asked.Proof = summary.Proof{Confirm: answer.Confirm.String(), How: answer.How}
		if answer.Routed {
			t.selected.Store(true)
		}
	}()
	return asked
}

// proveAgain asks once more at the end, because settings may have changed, unless the topic is gone.
func (p *Publisher) proveAgain(ctx context.Context) error {
	p.topic.mu.Lock()
	removed := len(p.topic.removed) > 0
	p.topic.mu.Unlock()
	all := []*proof{p.proof}
	if !removed {
		all = append(all, p.prove("at the end: "))
	}
	for _, asked := range all {
		select {
		case <-asked.done:
		case <-ctx.Done():
		}
	}
	return nil
}

// Proof returns the meaning of a confirmation.
func (s *Sender) Proof(ctx context.Context) (summary.Proof, error) {
	select {
	case <-s.pub.proof.done:
		return s.pub.proof.Proof, nil
	case <-ctx.Done():
		return summary.Proof{}, ctx.Err()
	}
}

// proven lists the answers that are there. The lock is held.
func (t *Topic) proven() (all []summary.Proof) {
	for _, p := range t.proofs {
		select {
		case <-p.done:
			all = append(all, p.Proof)
		default:
		}
	}
	return all
}
