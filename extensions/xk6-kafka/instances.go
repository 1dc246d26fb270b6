package kafka

import (
	"strconv"
	"sync"
)

// instances numbers the static members of this process: two with one name would throw each other out.
var instances = names{taken: map[[2]string]bool{}}

type names struct {
	mu    sync.Mutex
	taken map[[2]string]bool
}

// take gives the name with the least number that is free.
func (n *names) take(group, prefix string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := 0; ; i++ {
		name := prefix + "-" + strconv.Itoa(i)
		if key := [2]string{group, name}; !n.taken[key] {
			n.taken[key] = true
			return name
		}
	}
}

func (n *names) giveBack(group, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.taken, [2]string{group, name})
}
