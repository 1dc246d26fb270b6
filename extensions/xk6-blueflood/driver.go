package blueflood

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func init() {
	driver.Register(driver.Driver{
		Name:    "blueflood",
		Schemes: []string{"blueflood", "blueflood+tls"},
		OneHost: true,
		Doc: "Blueflood over HTTP: each message is a point of a metric, and what is sent together is one request. " +
			"It only sends, and in the end reads back what was confirmed.",
		Features: driver.Features{Confirm: driver.Accepted},
		Options:  options(),
		Open:     open,
		Classify: classify,
	})
}

func options() []driver.Option {
	return append(driver.ConnectOptions(), []driver.Option{
		{
			Name: "token", Scope: driver.OnConnect, Secret: true,
			Doc: "The token to authenticate with (X-Auth-Token), instead of a user.",
		},
		{
			Name: "queryAddress", Scope: driver.OnConnect,
			Doc: "Where the query service is, as host:port; port 20000 of the URL's host where empty.",
		},
		{
			Name: "timeout", Scope: driver.OnConnect, Type: driver.Duration, Default: "30s",
			Min: int64(time.Millisecond),
			Doc: "How long the answer to a request may take before it is given up.",
		},
		{
			Name: "maxRequest", Scope: driver.OnConnect, Type: driver.Size, Default: "1MiB", Min: 1,
			Doc: "How large a request may be: the server's HTTP_MAX_CONTENT_LENGTH. It never answers a larger one, " +
				"so that a batch that makes one is refused here.",
		},
		{
			Name: "metrics", Scope: driver.OnProducer, Type: driver.Int, Default: "1000", Min: 1, Max: 1 << 20,
			Doc: "How many metrics a producer has, which take turns: as many at least as a batch has messages, for " +
				"each to be of a metric of its own.",
		},
		{
			Name: "producerName", Scope: driver.OnProducer,
			Doc: "What stands in the metrics' names between the topic and the number; a name of its own for each " +
				"producer where empty. Two producers must not share it at a time.",
		},
		{
			Name: "value", Scope: driver.OnProducer, Type: driver.Enum, Default: "body",
			Allowed: []string{"body", "size"},
			Doc:     "What a point's value is: the number whose text the body is, or how many bytes the body has.",
		},
		{
			Name: "ttl", Scope: driver.OnProducer, Type: driver.Duration, Default: "24h", Min: int64(time.Second),
			Step: int64(time.Second),
			Doc:  "How long a point is kept.",
		},
		{
			Name: "readBack", Scope: driver.OnProducer, Type: driver.Bool, Default: "true",
			Doc: "Read back what was confirmed at the end of the test, which finds what is lost, and takes the " +
				"server some seconds for each 100,000 points.",
		},
		{Name: "unit", Scope: driver.OnProducer, Doc: "The metrics' unit; none where empty."},
	}...)
}
