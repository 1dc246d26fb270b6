package result

import (
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// NoCopies is why nothing is known of copies of what is read back.
const NoCopies = "of what is read back from the broker it is not known which is a copy"

// withoutCopies says why [Group.Copies] does not hold.
func (g *Group) withoutCopies() string {
	if g.Group == account.ReadBack {
		return NoCopies
	}
	return fmt.Sprintf("the %d messages that were received are of other topics or tests, and in no account of this one", g.Strangers)
}

// Copies tells whether it is known of what the group received which is a copy of which: of messages
// of other topics or tests it is not, nor of what is read back.
func (g *Group) Copies() bool {
	return g.Group != account.ReadBack && (g.Received+g.Drained > 0 || g.Strangers == 0)
}
