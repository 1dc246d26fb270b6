package redis

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"

// connectOptions are the connection options of all drivers of this package.
func connectOptions() []driver.Option {
	return append(driver.ConnectOptions(), []driver.Option{
		{
			Name: "mode", Scope: driver.OnConnect, Type: driver.Enum, Default: "auto",
			Allowed: []string{"auto", "single", "sentinel", "cluster"},
			Doc:     "What the URL's hosts are: one server, the sentinels that know the master, or nodes of a cluster; auto is sentinel where master is set, else cluster where there are several hosts.",
		},
		{Name: "master", Scope: driver.OnConnect, Doc: "The name by which the sentinels know the master."},
		{Name: "sentinelUser", Scope: driver.OnConnect, Doc: "The user's name at the sentinels."},
		{Name: "sentinelPassword", Scope: driver.OnConnect, Secret: true, Doc: "The password at the sentinels."},
		{
			Name:  "db",
			Scope: driver.OnConnect,
			Type:  driver.Int,
			Doc:   "The number of the database, where it is not the URL's path.",
		},
		{
			Name: "timeout", Scope: driver.OnConnect, Type: driver.Duration, Default: "5s", Min: 1,
			Doc: "How long a server may be silent while an answer is due, before the connection is given up.",
		},
	}...)
}

// confirmOptions are the producers' options of the drivers that store messages.
func confirmOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "create", Scope: driver.OnProducer, Type: driver.Bool,
			Doc: "Send to a topic that does not exist, which makes it; otherwise that is an error.",
		},
		{
			Name: "wait", Scope: driver.OnProducer, Type: driver.Int, Min: -1,
			Profile: map[driver.Profile]string{driver.Durable: "-1"},
			Doc:     "How many replicas must have a message before it is confirmed (WAIT, once per pipeline); -1 is as many as are connected when the producer opens. It waits for no fewer after a reconnect: where they are not there any more, its messages fail by waitTimeout.",
		},
		{
			Name: "fsync", Scope: driver.OnProducer, Type: driver.Enum, Default: "no", Allowed: []string{"no", "yes", "auto"},
			Profile: map[driver.Profile]string{driver.Durable: "auto"},
			Doc:     "Whether the server must have a message on disk before it is confirmed (WAITAOF, once per pipeline, Redis 7.2 or later); auto is where the server can when the producer opens, and stays so after a reconnect.",
		},
		{
			Name: "waitTimeout", Scope: driver.OnProducer, Type: driver.Duration, Default: "1s", Min: 1e6,
			Doc: "How long wait and fsync may take, each, before the messages of the pipeline fail.",
		},
	}
}
