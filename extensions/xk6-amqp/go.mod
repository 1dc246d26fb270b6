module github.com/xk6-broker/xk6-broker/extensions/xk6-amqp

go 1.26.0

require (
	github.com/rabbitmq/amqp091-go v1.16.0
	github.com/xk6-broker/xk6-broker/extensions/xk6-broker v0.0.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/RoaringBitmap/roaring/v2 v2.8.0 // indirect
	github.com/bits-and-blooms/bitset v1.12.0 // indirect
	github.com/mschoch/smat v0.2.0 // indirect
	github.com/prometheus/procfs v0.21.1 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/xk6-broker/xk6-broker/extensions/xk6-broker => ../xk6-broker
