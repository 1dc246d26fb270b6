module github.com/xk6-broker/xk6-broker/extensions/xk6-kurrentdb

go 1.26.0

require (
	github.com/kurrent-io/KurrentDB-Client-Go v1.2.0
	github.com/xk6-broker/xk6-broker/extensions/xk6-broker v0.0.0
	go.uber.org/goleak v1.3.0
	google.golang.org/grpc v1.83.0
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/RoaringBitmap/roaring/v2 v2.8.0 // indirect
	github.com/bits-and-blooms/bitset v1.12.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mschoch/smat v0.2.0 // indirect
	github.com/prometheus/procfs v0.21.1 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.40.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260720211330-0afa2a65878a // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)

replace github.com/xk6-broker/xk6-broker/extensions/xk6-broker => ../xk6-broker
