module github.com/xk6-broker/xk6-broker/extensions/xk6-broker

go 1.26.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	go.k6.io/k6/v2 v2.2.0
	go.uber.org/goleak v1.3.0
)

require golang.org/x/sys v0.49.0 // indirect
