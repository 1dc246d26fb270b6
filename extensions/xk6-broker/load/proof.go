package load

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Proof is what a confirmation proved for some producers of a topic.
type Proof struct {
	Confirm string `json:"confirm"`       // "unconfirmed", "accepted" or "replicated"
	How     string `json:"how,omitempty"` // by which setting
}

// Created notes that this test made the topic, and as what. For the producers that are open it is asked anew what a confirmation proves: the
// topic may have been another one.
func (r *Run) Created(t *Topic, as driver.TopicSpec) {
	if !t.is(&as) {
		return
	}
	r.mu.Lock()
	publishers := slices.Clone(r.publishers)
	r.mu.Unlock()
	for _, p := range publishers {
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
	t.proven = slices.AppendSeq(t.proven, maps.Values(t.proofs))
	clear(t.proofs)
	return true
}

// proving is what is being found out of a sort of producers.
type proving struct {
	Proof

	known chan struct{} // closed when it is
}

// prove asks what a confirmation proves for such a producer: each one that finds it out for itself, and else once for all of the same options, while
// the topic is the same. Nobody who sends waits for the answer.
func (p *Publisher) prove() *proving {
	t := p.topic
	key := fmt.Sprint(p.config.Options)
	prover, known := p.producer.(driver.Prover)
	if known {
		key = fmt.Sprintf("%p", p)
	} else {
		prover, known = p.conn.(driver.Prover)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if asked, ok := t.proofs[key]; ok {
		return asked
	}
	asked := &proving{known: make(chan struct{})}
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

// Proof is what a confirmation proves, once that is known.
func (s *Sender) Proof(ctx context.Context) (Proof, error) {
	asked := s.pub.prove()
	select {
	case <-asked.known:
		return asked.Proof, nil
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
