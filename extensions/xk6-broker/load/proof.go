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

// prove asks once, for producers of the same options, what a confirmation proves.
func (t *Topic) prove(ctx context.Context, conn driver.Conn, c driver.ProducerConfig) Proof {
	key := fmt.Sprint(c.Options)
	t.mu.Lock()
	known, ok := t.proofs[key]
	created := t.created
	t.mu.Unlock()
	if ok {
		return known
	}
	proof := driver.Proof{Confirm: t.Address.Driver.Features.Confirm}
	if prover, ok := conn.(driver.Prover); ok {
		ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
		defer cancel()
		proof = prover.Proof(ctx, c, created)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.proofs[key] = Proof{proof.Confirm.String(), proof.How}
	return t.proofs[key]
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
