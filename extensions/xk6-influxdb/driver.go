package influxdb

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func init() {
	driver.Register(driver.Driver{
		Name:    "influxdb",
		Schemes: []string{"influxdb", "influxdb+tls"},
		OneHost: true,
		Doc: "InfluxDB's line protocol over HTTP: each message is a point, and what is sent together is one " +
			"request. It only sends.",
		Features: driver.Features{Confirm: driver.Accepted, Key: true, MaxMessageBytes: maxField},
		Options:  options(),
		Open:     open,
		Classify: classify,
	})
}

func options() []driver.Option {
	return append(driver.ConnectOptions(), []driver.Option{
		{
			Name: "token", Scope: driver.OnConnect, Secret: true,
			Doc: "The token to authenticate with, instead of a user.",
		},
		{
			Name: "createDatabase", Scope: driver.OnConnect, Type: driver.Bool,
			Doc: "Create the URL's database where it is not there.",
		},
		{
			Name: "retentionPolicy", Scope: driver.OnConnect,
			Doc: "The retention policy to write to; the database's default where empty.",
		},
		{
			Name: "timeout", Scope: driver.OnConnect, Type: driver.Duration, Default: "30s",
			Min: int64(time.Millisecond),
			Doc: "How long the answer to a request may take before it is given up.",
		},
		{
			Name: "body", Scope: driver.OnProducer, Type: driver.Enum, Default: "field",
			Allowed: []string{"field", "fields"},
			Doc: "What a body is: one string field of the point, or all its fields in the line protocol, such as " +
				"value=1.5,count=3i.",
		},
		{
			Name: "tags", Scope: driver.OnProducer, Type: driver.Map,
			Doc: "Tags of every point, such as { host: 'a' }; in a URL tags=name=value, once for each.",
		},
		{Name: "gzip", Scope: driver.OnProducer, Type: driver.Bool, Doc: "Compress the requests."},
	}...)
}
