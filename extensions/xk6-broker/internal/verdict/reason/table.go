package reason

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// The codes. The table has the meaning of each.
const (
	NothingMeasured       Code = "nothing-measured"
	NoMeasuredWindow      Code = "no-measured-window"
	EndedEarly            Code = "ended-early"
	ArrivalsDropped       Code = "arrivals-dropped"
	LoadIncomplete        Code = "load-incomplete"
	GeneratorSaturated    Code = "generator-saturated"
	SendsFailed           Code = "sends-failed"
	NothingReceived       Code = "nothing-received"
	Clocks                Code = "clocks"
	EarlierTest           Code = "earlier-test"
	Drained               Code = "drained"
	Undelivered           Code = "undelivered"
	Uncertain             Code = "uncertain"
	NoConsumer            Code = "no-consumer"
	Lost                  Code = "lost"
	Routed                Code = "routed"
	Foreign               Code = "foreign"
	NotStamped            Code = "not-stamped"
	PercentileNotReliable Code = "percentile-not-reliable"
	WaitedForVU           Code = "waited-for-vu"
	NotStationary         Code = "not-stationary"
	ConsumersSlower       Code = "consumers-slower"
	ClosedLoop            Code = "closed-loop"
	EmbeddedBroker        Code = "embedded-broker"
	ProcessMissing        Code = "process-missing"
	ProcessesDiffer       Code = "processes-differ"
	ThresholdNotJudged    Code = "threshold-not-judged"
)

// entry is the row of a code.
type entry struct {
	Level    string    `json:"level"`   // or levels
	Against  string    `json:"against"` // latencies, account or both; "" for neither as such
	Worst    string    `json:"worst"`   // the value by which one is worse: greater or, after "-", smaller
	Keys     []string  `json:"keys"`    // the values that distinguish two statements of one code
	ByMerge  bool      `json:"byMerge"` // a merge decides on it anew
	Text     string    `json:"text"`    // if a variant has none
	Variants []variant `json:"variants"`
	Cause    string    `json:"cause"`
	Remedy   string    `json:"remedy"` // if a variant has none
}

// variant is one of the texts of a code, chosen by the value "why".
type variant struct {
	Why    string `json:"why"`
	Text   string `json:"text"`
	Remedy string `json:"remedy"`
}

//go:embed table.json
var tableText []byte

var table = func() (all map[Code]entry) {
	if err := json.Unmarshal(tableText, &all); err != nil {
		panic(fmt.Errorf("reason: table.json: %w", err))
	}
	return all
}()
