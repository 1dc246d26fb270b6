package peers

import (
	"encoding/json"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/clock"
)

// note is what one process tells another. There is one kind: each has all that is to be known, so that it does not matter which are lost,
// repeated or late.
type note struct {
	Run      uint32           `json:"run"`
	From     int              `json:"from"`
	Instance uint32           `json:"instance"` // of the process that tells
	To       uint32           `json:"to"`       // the instance that is told; 0 where nothing was heard of it
	Name     string           `json:"name"`
	Sent     int64            `json:"sent"`
	Echo     *echo            `json:"echo,omitempty"`
	Anchor   clock.Anchor     `json:"anchor"`
	Points   map[string]int64 `json:"points"`
	Leaving  bool             `json:"leaving,omitempty"`
}

// echo is a note that came in: when it was sent by the one clock, and heard by the other.
type echo struct {
	Sent  int64 `json:"sent"`
	Heard int64 `json:"heard"`
}

// take hears a note.
func (p *Peers) take(m *driver.Message) {
	var n note
	if json.Unmarshal(m.Body, &n) != nil || n.Run != p.Run || n.From < 0 || n.From >= p.Count || n.From == p.Index {
		return
	}
	heard := p.at(m.Received)
	p.mu.Lock()
	defer p.mu.Unlock()
	from := p.all[n.From]
	switch {
	case n.To != p.Instance: // it has not heard of this process, but perhaps of another of that number; or is of an earlier time, and nobody took its notes
		if n.To != 0 && n.Sent > p.began {
			from.rival = n.To
		}
		if from.instance == 0 && from.guess != n.Instance {
			from.guess = n.Instance
			from.hurry()
		}
		return
	case from.instance == 0:
		from.instance, from.name = n.Instance, n.Name
	case from.instance != n.Instance:
		from.twin = n.Instance
		return
	}
	from.limits.AtLeast(n.Sent, heard)
	if e := n.Echo; e != nil {
		from.limits.AtMost(e.Sent, e.Heard)
		from.limits.Trip((heard - e.Sent) - (n.Sent - e.Heard))
		from.told = max(from.told, e.Sent)
	}
	from.echo, from.last, from.anchor = &echo{n.Sent, heard}, heard, n.Anchor
	for point, at := range n.Points {
		if _, known := from.points[point]; !known {
			from.points[point] = at
		}
	}
	if n.Leaving {
		from.gone = true
		from.answer() // it waits to be let go
	}
	if p.waiting+p.watching > 0 || p.left != 0 {
		p.signal()
	}
}

// note writes what another process is to know.
func (p *Peers) note(to *peer) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := note{
		Run: p.Run, From: p.Index, Instance: p.Instance, To: to.instance, Name: p.Name, Echo: to.echo, Anchor: p.anchor, Points: p.points,
		Leaving: p.left != 0,
	}
	if n.To == 0 {
		n.To = to.guess
	}
	n.Sent = p.at(driver.Now())
	text, _ := json.Marshal(n) // there is nothing in it that is no JSON
	return text
}
