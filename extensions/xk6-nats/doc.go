// Package nats drives NATS: core publish/subscribe as "nats", JetStream as "nats-jetstream".
package nats
