package load

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Proof is what a confirmation proved for some producers of a topic.
type Proof struct {
	Confirm string `json:"confirm"`       // "unconfirmed", "accepted" or "replicated"
	How     string `json:"how,omitempty"` // by which setting
}

// Created notes that this test made the topic, and as what.
func (t *Topic) Created(as driver.TopicSpec) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.created = &as
}

// proving is what is being found out of a sort of producers.
type proving struct {
	Proof

	known chan struct{} // closed when it is
}

// prove asks once, for producers of the same options, what a confirmation proves. Nobody who sends waits for the answer.
func (r *Run) prove(t *Topic, conn driver.Conn, c driver.ProducerConfig) *proving {
	key := fmt.Sprint(c.Options)
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.proofs[key]; ok {
		return p
	}
	p := &proving{known: make(chan struct{})}
	t.proofs[key] = p
	prover, ok := conn.(driver.Prover)
	if !ok {
		p.Confirm = t.Address.Driver.Features.Confirm.String()
		close(p.known)
		return p
	}
	created := t.created
	r.proving.Go(func() {
		defer close(p.known)
		ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
		defer cancel()
		proof := prover.Proof(ctx, c, created)
		p.Confirm, p.How = proof.Confirm.String(), proof.How
		if proof.Routed {
			t.routed.Store(true)
		}
	})
	return p
}

// Proof is what a confirmation proves, once that is known.
func (s *Sender) Proof(ctx context.Context) (Proof, error) {
	select {
	case <-s.pub.proof.known:
		return s.pub.proof.Proof, nil
	case <-ctx.Done():
		return Proof{}, ctx.Err()
	}
}

// proves notes what confirmations prove of the topic. The weakest comes first, and is what Confirm says.
func (t *TopicResult) proves(proofs ...Proof) {
	for _, p := range proofs {
		if !slices.Contains(t.Proofs, p) {
			t.Proofs = append(t.Proofs, p)
		}
	}
	slices.SortFunc(t.Proofs, func(a, b Proof) int {
		return cmp.Or(cmp.Compare(slices.Index(confirms, a.Confirm), slices.Index(confirms, b.Confirm)), cmp.Compare(a.How, b.How))
	})
	if len(t.Proofs) > 0 {
		t.Confirm = t.Proofs[0].Confirm
	}
}

// Meaning is what a confirmation proves of the topic, in words; "" where nobody sent.
func (t *TopicResult) Meaning() string {
	var all []string
	for _, p := range t.Proofs {
		text := p.Confirm
		if p.How != "" {
			text += ": " + p.How
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// confirms are what confirmations prove, the weakest first.
var confirms = []string{driver.Unconfirmed.String(), driver.Accepted.String(), driver.Replicated.String()}
