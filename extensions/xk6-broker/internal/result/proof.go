package result

import (
	"cmp"
	"slices"
	"strings"
)

// Proof is what a confirmation proved for some producers of a topic.
type Proof struct {
	Confirm string `json:"confirm"`       // "unconfirmed", "accepted" or "replicated"
	How     string `json:"how,omitempty"` // by which setting
}

// Proves notes what confirmations prove of the topic. The weakest comes first, and is what Confirm says.
func (t *Topic) Proves(proofs ...Proof) {
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
func (t *Topic) Meaning() string {
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
var confirms = []string{"unconfirmed", "accepted", "replicated"}
