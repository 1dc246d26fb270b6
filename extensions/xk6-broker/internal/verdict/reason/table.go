package reason

// The codes. The table says what each means.
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
	Unsettled             Code = "unsettled"
	ClosedLoop            Code = "closed-loop"
	EmbeddedBroker        Code = "embedded-broker"
	ProcessMissing        Code = "process-missing"
	ProcessesDiffer       Code = "processes-differ"
	ThresholdNotJudged    Code = "threshold-not-judged"
)

// Against is what an invalid reason speaks against.
type Against uint8

// What a code can speak against.
const (
	Latencies Against = 1 << iota
	Account
	Both    = Latencies | Account
	Nothing = Against(0) // neither as a whole: the reason names what it is about
)

// entry is the row of a code.
type entry struct {
	against  Against
	levels   []Level
	variants []variant
	cause    string
	remedy   string   // where a variant has none
	worst    string   // the value by which the worst is chosen: greater is worse, with "-" before it smaller
	keys     []string // the values that tell two statements of one code apart
	byMerge  bool     // a merge decides on it anew
}

// variant is one of the texts of a code, chosen by the value "why".
type variant struct{ why, text, remedy string }

var (
	invalid = []Level{Invalid}
	note    = []Level{Note}
	either  = []Level{Invalid, Note}
)

const ownRun = "Give each test its own BROKER_RUN."

var table = map[Code]entry{
	NothingMeasured: {
		against: Both, levels: invalid, worst: "count",
		variants: []variant{
			{why: "nothing", text: "nothing was sent and nothing was received"},
			{why: "unconfirmed", text: "none of {count:messages} was confirmed"},
		},
		cause: "Each call failed, or the script neither sends nor receives.", remedy: "See the topic's errors.",
	},
	NoMeasuredWindow: {
		against: Latencies, levels: either,
		variants: []variant{
			{"warm-up", "the test ended within its warm-up of {warmUp:duration}, and the latencies are those of the warm-up", "Run it for longer than the warm-up."},
			{"empty", "nothing was measured or confirmed in it", "Send and receive in the phase that counts, and see the errors."},
			{"unnamed", "no phase is called measured: the verdict is on the whole run, with its warm-up", "Call the phase that counts `measured`."},
		},
		cause: "The phase that counts is missing or empty.",
	},
	EndedEarly: {
		against: Both, levels: invalid, worst: "count",
		variants: []variant{
			{"interrupted", "the test was interrupted or aborted {after:duration} after its start", "Let it run to its end."},
			{"no-iteration", "no iteration ever ran", "See k6's log: setup() failed, or there was no time for an iteration."},
			{"stranded", "{count} VUs did nothing more after k6 had interrupted their script at the end of a scenario", "Give scenarios whose VUs others use again a gracefulStop within which their iterations end."},
		},
		cause: "Ctrl-C, an abort, a failed setup(), or VUs that k6 cannot resume.",
	},
	ArrivalsDropped: {
		against: Latencies, levels: either, worst: "count",
		variants: []variant{
			{"no-vu", "k6 dropped {count} arrivals because no VU was free: the slowest moments are missing from the latencies", "Raise preAllocatedVUs and maxVUs, or use the executor open-arrival-rate."},
			{"unserved", "{count} arrivals were due but never got an iteration", "Raise maxVUs or gracefulStop, or lower the rate."},
			{"max-duration", "{count} iterations never ran, because the maxDuration of their scenario was over", "Raise maxDuration."},
		},
		cause: "Each VU was busy when a message was due: the script or the broker takes longer than the VUs allow.",
	},
	LoadIncomplete: {
		against: Latencies, levels: either, worst: "missing", keys: []string{"scenario"},
		variants: []variant{
			{why: "due", text: "{count:messages} came due and never went out, because the test ended first"},
			{"idle", "scenario {scenario} had no VU in this process, whose execution segment is {segment}: others ran all of it", "Give the scenario as many VUs as there are processes, or use the executor producers."},
		},
		cause: "The scenario was too short for the load.", remedy: "Give the scenario more time (maxDuration, duration, gracefulStop).",
	},
	GeneratorSaturated: {
		against: Latencies, levels: invalid, worst: "cpu",
		variants: []variant{{text: "the load generator used {cpu:percent} of its CPUs in its busiest {window:duration}: it measured itself"}},
		cause:    "The rate is too high for the machine.", remedy: "Lower the rate, or give k6 more CPUs.",
	},
	SendsFailed: {
		against: Latencies, levels: either, worst: "share", keys: []string{"sends"},
		variants: []variant{{text: "{count} of {total} {sends} failed ({share:percent}), and the latencies lack them"}},
		cause:    "The broker refused messages, or did not answer in time. Above 0.1 % the result is not valid.", remedy: "See the topic's errors.",
	},
	NothingReceived: {
		against: Account, levels: invalid, byMerge: true,
		variants: []variant{{text: "the script has a consumer that received nothing: neither end-to-end latency nor loss was measured"}},
		cause:    "receive() or consume() was not called, or not for long enough.", remedy: "Let the consumers receive, and for longer than the producers send.",
	},
	Clocks: {
		against: Latencies, levels: either, worst: "apart",
		variants: []variant{
			{"negative", "{count:messages} arrived before they were sent, by the clocks of two machines[: {clocks}]", "Set the machines' clocks."},
			{"wrong", "no percentile of the end-to-end latency is reliable: {clocks}", "Set the machines' clocks."},
			{why: "apart", text: "between processes, end-to-end latency is ± {apart:duration}, because their clocks may differ by that"},
			{why: "not-compared", text: "latencies between the {count} processes are by their machines' clocks, which were not compared"},
		},
		cause: "End-to-end latency between two machines is read from two clocks.",
	},
	EarlierTest: {
		against: Both, levels: invalid, worst: "count", byMerge: true,
		variants: []variant{
			{"run", "{count:messages} came from an earlier test with the same BROKER_RUN: no latency counts them", ownRun},
			{
				"early", "{count:messages} went out more than {skew:duration} before the process that received them began: they are of an earlier test with the same BROKER_RUN, " +
					"or of a process that began long before", "Give each test its own BROKER_RUN, and start its processes together.",
			},
			{"processes", "messages came from {count} other processes with the same BROKER_RUN, and the test has {processes} in all", ownRun},
		},
		cause: "An earlier test had the same BROKER_RUN, and left messages at the broker.",
	},
	Drained: {
		against: Latencies, levels: either, worst: "share", keys: []string{"from"},
		variants: []variant{{text: "{count:messages} ({share:percent})[ of {from}] reached no consumer and were read at the end of the test: the latencies lack the slowest"}},
		cause:    "The consumers ended before they had received everything. Above 0.1 % the result is not valid.",
		remedy:   "Let the consumers run longer (the executor consumers waits for drainTimeout, an option of connect), or give them more capacity.",
	},
	Undelivered: {
		against: Latencies, levels: either, worst: "share", byMerge: true,
		variants: []variant{{text: "{count:messages} ({share:percent}) remained at the broker when the test ended: the latencies lack the slowest"}},
		cause:    "The consumers ended before they had received everything.",
		remedy:   "Let the consumers run longer, or give them more capacity.",
	},
	Uncertain: {
		against: Account, levels: either, worst: "count", byMerge: true,
		variants: []variant{
			{"joining", "{count:messages} went out before or just when a consumer came, and never arrived", "Let consumers be ready before the first send."},
			{"leaving", "{count:messages} went out just when a consumer left, and never arrived", "Let consumers leave after the last send."},
			{"removed", "{count:messages} never arrived, and the test purged or deleted the topic", "Let the consumers read to the end first."},
			{"no-backlog", "{count:messages} never arrived, and may be lost, still at the broker, or removed by the test", "The broker cannot tell. Of several processes let one that consumes end last, or use a coordinator."},
			{"other-reader", "{count:messages} never arrived, and another reader may have them", "Name each group once, and let the test read each key or partition that it writes."},
			{"killed", "{count:messages} never arrived, and a process that was killed may have them", ""},
			{"missing-process", "{count:messages} never arrived, and a process whose result is missing may have them", "Merge the results of all processes."},
			{"aliased", "{count:messages} arrived[ at {broker}] and went out to another address", "If both are the same broker, name it by one URL."},
		},
		cause: "It cannot be known whether these messages are lost. They are not counted as lost.",
	},
	NoConsumer: {
		against: Nothing, levels: note, worst: "count",
		variants: []variant{
			{"away", "{count:messages} went out while the group had no consumer: no account counts them", "Let the consumers be ready first (ready()), and outlive the producers (the executor consumers does)."},
		},
		cause: "The broker keeps no messages for consumers that are not there.",
	},
	Lost: {
		against: Nothing, levels: note, worst: "share",
		variants: []variant{
			{why: "", text: "{count:messages} of {total} lost ({share:percent})"},
			{why: "held", text: "{count:messages} of {total} lost ({share:percent}), unless a client outside of the test holds them unsettled"},
		},
		cause: "The broker confirmed the messages, no consumer received them, and the broker no longer has them.",
	},
	Routed: {
		against: Nothing, levels: note, worst: "count", keys: []string{"from"},
		variants: []variant{
			{why: "here", text: "{count:messages} came by way of another topic of this test: no account of this topic counts them"},
		},
		cause: "Dead letters, wildcards or forwarded messages.",
	},
	Foreign: {
		against: Nothing, levels: note, worst: "count",
		variants: []variant{
			{"messages", "{count:messages} came from other tests: no latency counts them, but they took the consumers' time", "Give each test topics of its own."},
			{"replies", "{count} replies came for no waiting request: late, again, or of another test", "Raise the timeout of requests, or see who else uses the topic of the replies."},
		},
		cause: "Another test or another client uses the topic.",
	},
	NotStamped: {
		against: Nothing, levels: note, worst: "count",
		variants: []variant{{text: "{count:messages} had no stamp: neither end-to-end latency nor the account counts them"}},
		cause:    "The producer's option stamp is off, or another client sent them.",
	},
	PercentileNotReliable: {
		against: Nothing, levels: either, worst: "-upTo", keys: []string{"latency"},
		variants: []variant{
			{"missing", "{quantile} of the {latency} is not reliable: {share:percent} of the messages, the slowest, are missing from it", ""},
			{"script", late, "Look first at what the script does before it sends, such as a sleep or a request, and while others wait for its VU."},
			{"hypervisor", late, "Use a machine that shares no CPUs: the hypervisor gave {cpu:percent} of them to other machines."},
			{"others", late, "Run the generator apart from other processes: they used {cpu:percent} of this machine's CPUs."},
			{"k6", late, "Lower the rate, or give k6 more CPUs: it used {cpu:percent} of them."},
			{"cgroup", late, "Raise the CPU limit of k6's cgroup: for {cpu:percent} of the time something in it waited for a CPU."},
			{"machine", late, "Lower the rate, or look for what stops k6: other programs, a debugger, swapping, power saving."},
		},
		cause: "More than a tenth of the percentile, and more than 2 ms, may be delay of the generator, or more than a tenth of its samples are missing. " +
			"The result is not valid if that holds of the median.",
	},
	WaitedForVU: {
		against: Nothing, levels: note,
		variants: []variant{{text: "some sends waited for a free VU, for room in the window or for their connection: their latency counts from when they were due"}},
		cause:    "The VUs or the window are fewer than the rate needs.",
	},
	NotStationary: {
		against: Nothing, levels: note, worst: "change", keys: []string{"course"},
		variants: []variant{
			{text: "not stationary: {course} {way} by {change:percent} over the window ({test})[; {driven}]"},
		},
		cause: "The system, or the load, changed while it was measured.",
	},
	ConsumersSlower: {
		against: Nothing, levels: note, worst: "wait",
		variants: []variant{
			{why: "buffered", text: "half of the messages waited longer than {wait:duration} in the client's buffer: the consumers were slower than what came in"},
			{why: "backlog", text: "outstanding messages grew under load to {count}, {wait:duration} of it: the consumers were slower than what came in"},
		},
		cause: "The consumers took longer for a message than the time between two.", remedy: "Add consumers, or lower the rate.",
	},
	Unsettled: {
		against: Nothing, levels: note, worst: "count",
		variants: []variant{
			{text: "the consumers settled {settled} of {received:messages} that they received"},
		},
		cause: "What is not settled comes again.", remedy: "Call ack() for each message.",
	},
	ClosedLoop: {
		against: Nothing, levels: note,
		variants: []variant{
			{why: "all", text: "closed loop: messages go out when there is room for them, so publish latency is service time and hides waiting"},
			{why: "part", text: "part of it was sent in a closed loop, which has its own rows, and the tag loop in k6's metrics"},
		},
		cause: "No schedule says when a message is due.", remedy: "Use open-arrival-rate or produce({ rate }) to measure waiting.",
	},
	EmbeddedBroker: {
		against: Nothing, levels: note,
		variants: []variant{{text: "the embedded broker shares this process, so its latencies say nothing about a real one"}},
		cause:    "The URL names the broker that runs inside k6.", remedy: "Connect to a broker of its own.",
	},
	ProcessMissing: {
		against: Both, levels: either, worst: "count", keys: []string{"name"},
		variants: []variant{
			{"absent", "{count} of the {processes} processes of the test are missing[ ({names})]", "Merge their results too."},
			{
				"unmerged", "a process is missing: {count:messages} came from {name}, whose result is none of these",
				"Merge it too; a process that was killed leaves a result if BROKER_REPORT_MEANWHILE is set. If it was an earlier test, give each test its own BROKER_RUN.",
			},
			{"late", "{name}: the others went on without it, and what was due before its consumers were ready is not accounted for", "Start all processes of the test."},
			{"killed", "{name} was killed: what it did after {after:duration}, when it last wrote its results, is not known[; others received {count:messages} that it sent later]", "Let each process run to its end."},
			{"unknown", "it is not known whether these {count} processes are all of the test", "If they are, say so: --processes {count}, or BROKER_PROCESSES={count}."},
		},
		cause: "The result of a process of the test is missing, or incomplete.",
	},
	ProcessesDiffer: {
		against: Both, levels: either, worst: "apart", keys: []string{"names", "detail"},
		variants: []variant{
			{"begin", "{names} began {apart:duration} apart: it was not the load that was asked for", "Use open-arrival-rate, and let the processes wait for each other."},
			{"no-run", "this process had the execution segment {detail} and no BROKER_RUN: it took the others' messages for another test's", "Give all processes the same BROKER_RUN."},
			{"load", "{names} did not run two parts of one test", "Give all processes one script, one environment and one --execution-segment-sequence."},
			{"segments", "only the execution segments {detail} are there", "Start one process for each execution segment."},
			{"phase", "{names} were not in the phase {detail} at the same time", "Let all processes begin a phase together."},
		},
		cause: "The processes did not run one test together.",
	},
	ThresholdNotJudged: {
		against: Nothing, levels: invalid, keys: []string{"metric", "source"}, byMerge: true,
		variants: []variant{{text: "threshold {metric} {source} could not be judged, and fails: {detail}"}},
		cause:    "Too few samples, or another reason speaks against what the threshold compares.", remedy: "",
	},
}

const late = "{quantile} of the {latency} is not reliable: up to {late:duration} of its {value:duration} is delay of the load generator or its machine"
