package rocketmq

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-rocketmq/internal/remoting"
)

// Requests of the remoting protocol.
const (
	queryOffset        = 14
	updateOffset       = 15
	updateTopic        = 17
	getConfig          = 26
	maxOffset          = 30
	minOffset          = 31
	runtimeInfo        = 28
	routeOfTopic       = 105
	clusterInfo        = 106
	updateGroup        = 200
	deleteGroup        = 207
	deleteTopic        = 215
	forgetTopic        = 216 // by the name server
	groupsOfTopic      = 300
	topicsOfGroup      = 343
	getTopic           = 351
	getGroup           = 352
	retryPrefix        = "%RETRY%"
	deadLetterPrefix   = "%DLQ%"
	permissionReadSend = 6
)

// admin asks name servers and brokers by the remoting protocol.
type admin struct {
	nameServers []string
	names       *remoting.Client
	broker      *remoting.Client
}

func newAdmin(t driver.Target, dial driver.Dial) *admin {
	const namePort = "9876"
	user, password := t.Login()
	client := func(description string) *remoting.Client {
		return &remoting.Client{
			Dial: remoting.Dial(
				dial,
			), Timeout: t.Options.Duration("requestTimeout"), User: user, Password: password, Description: description,
		}
	}
	a := &admin{nameServers: t.Options.List("nameServer"), names: client("name server"), broker: client("broker")}
	if len(a.nameServers) == 0 {
		for _, host := range t.Addresses(namePort) {
			name, _, _ := net.SplitHostPort(host)
			a.nameServers = append(a.nameServers, net.JoinHostPort(name, namePort))
		}
	}
	for i, host := range a.nameServers {
		if !strings.Contains(host, ":") {
			a.nameServers[i] = net.JoinHostPort(host, namePort)
		}
	}
	return a
}

// ask asks the first name server that answers.
func (a *admin) ask(ctx context.Context, code int, fields map[string]string, into any) (err error) {
	for _, address := range a.nameServers {
		var body []byte
		if _, body, err = a.names.Call(ctx, address, code, fields, nil); err == nil {
			if into == nil {
				return nil
			}
			return remoting.Unmarshal(body, into)
		}
		if classify(err) != driver.Disconnected && classify(err) != driver.Timeout {
			return err
		}
	}
	return err
}

// set is a broker by its name: a master and the copies that it has.
type set struct {
	Name      string            `json:"brokerName"`
	Addresses map[string]string `json:"brokerAddrs"` // by number; 0 is the master
}

func (s set) master() string { return s.Addresses["0"] }

// brokers are all of the cluster, by name.
func (a *admin) brokers(ctx context.Context) ([]set, error) {
	var result struct {
		Brokers map[string]set `json:"brokerAddrTable"`
	}
	if err := a.ask(ctx, clusterInfo, nil, &result); err != nil {
		return nil, err
	}
	return masters(result.Brokers), nil
}

func masters(all map[string]set) (some []set) {
	for _, s := range all {
		if s.master() != "" {
			some = append(some, s)
		}
	}
	slices.SortFunc(some, func(a, b set) int { return strings.Compare(a.Name, b.Name) })
	return some
}

// version returns the version of a broker; empty if it does not report one.
func (a *admin) version(ctx context.Context, s set) string {
	var result struct {
		Table map[string]string `json:"table"`
	}
	_, body, err := a.broker.Call(ctx, s.master(), runtimeInfo, nil, nil)
	if err != nil || remoting.Unmarshal(body, &result) != nil {
		return ""
	}
	return strings.ReplaceAll(strings.TrimPrefix(result.Table["brokerVersionDesc"], "V"), "_", ".")
}

// part is one broker's part of a topic.
type part struct {
	set
	queues int
}

// parts returns the parts of a topic from the name server.
func (a *admin) parts(ctx context.Context, topic string) ([]part, error) {
	var result struct {
		Brokers []set `json:"brokerDatas"`
		Queues  []struct {
			Broker string `json:"brokerName"`
			Read   int    `json:"readQueueNums"`
		} `json:"queueDatas"`
	}
	if err := a.ask(ctx, routeOfTopic, map[string]string{"topic": topic}, &result); err != nil {
		return nil, err
	}
	sets := map[string]set{}
	for _, s := range result.Brokers {
		sets[s.Name] = s
	}
	var all []part
	for _, s := range masters(sets) {
		for _, q := range result.Queues {
			if q.Broker == s.Name {
				all = append(all, part{s, q.Read})
			}
		}
	}
	if len(all) == 0 {
		return nil, errNoMaster
	}
	return all, nil
}

// offset asks a broker for one of the offsets that have to do with a queue.
func (a *admin) offset(ctx context.Context, s set, code int, fields map[string]string) (int64, error) {
	answer, _, err := a.broker.Call(ctx, s.master(), code, fields, nil)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(answer["offset"], 10, 64)
}

// text is a value as JSON.
func text(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err) // what is given here can be written
	}
	return b
}
