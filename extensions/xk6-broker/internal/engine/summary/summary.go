// Package summary is the model of the facts about one run that its recording does not have.
// It has data only: the engine fills it in, and the result of the run is made from it.
package summary

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// Run is the summary of one process of a test.
type Run struct {
	ID        uint32
	Instance  uint32
	Processes int  // of the test; 0 if unknown
	Siblings  int  // other processes whose messages were received
	Shared    bool // other processes may use the same topics
	Started   time.Time
	Elapsed   time.Duration
	Machine   *Machine // nil without a monitor
	Topics    []Topic
}

// Machine is the greatest share of each resource over a window under load, 0 to 1; nil if unknown.
type Machine struct{ Process, Host, Others, Steal, Pressure, GroupPressure *float64 }

// Topic is the summary of one topic.
type Topic struct {
	Address    *driver.Address
	Name       string
	Info       driver.Info
	Proofs     []Proof
	Options    Options
	OpenLoop   bool // messages were sent by a schedule
	ClosedLoop bool // messages were sent without a schedule
	Declared   bool // the script has a consumer for it
	Groups     []Group
}

// Proof is the meaning of a confirmation: "unconfirmed", "accepted" or "replicated", by a setting.
type Proof struct{ Confirm, How string }

// Group is the account of one consumer group, or of all subscribers.
type Group struct {
	account.Account
	Members   int   // at a time, at most
	Strangers int64 // messages received of producers that are none of the topic's
}

// MostOptions is how many different sets of options of one sort are remembered.
const MostOptions = 16

// Options are the options in force on a topic by sort: "connect", "topic", "producer", "consumer",
// "produce" or "consume". They are in the order of their JSON, and equal ones are there once.
type Options map[string][]map[string]any

// Add adds the options of one user.
func (o Options) Add(sort string, options map[string]any) {
	i, found := slices.BinarySearchFunc(o[sort], options, func(a, b map[string]any) int {
		x, _ := json.Marshal(a) // scalars and lists of them
		y, _ := json.Marshal(b)
		return bytes.Compare(x, y)
	})
	if !found && len(o[sort]) < MostOptions {
		o[sort] = slices.Insert(slices.Clone(o[sort]), i, options)
	}
}
