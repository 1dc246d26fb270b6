package kurrentdb

import (
	"testing"

	"github.com/kurrent-io/KurrentDB-Client-Go/kurrentdb"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-kurrentdb/internal/double"
)

// The product's own client reads what the driver writes, and the other way round. (Between them is the double.)
func TestTheProductsClientReadsAndWrites(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	f.topic(c, "t")
	if err := f.send(f.producer(c, "t", map[string]any{"eventType": "placed"}), driver.Batch{{
		Key: []byte("42"), Body: []byte(`{"a":1}`), Headers: []driver.Header{{Name: "h", Value: []byte("v")}},
	}})[0]; err != nil {
		t.Fatal(err)
	}
	config, err := kurrentdb.ParseConnectionString(f.url + "?tls=false")
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = kurrentdb.NoopLogging()
	client, err := kurrentdb.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // it never fails
	stream, err := client.ReadStream(f.context(), "t", kurrentdb.ReadStreamOptions{From: kurrentdb.Start{}}, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	got, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	e := got.OriginalEvent()
	if e.EventType != "placed" || e.ContentType != "application/octet-stream" || string(e.Data) != `{"a":1}` || string(e.UserMetadata) != `{"$correlationId":"42","h":"v"}` {
		t.Errorf("the client reads %+v", e)
	}
	if e.EventID.Version() != 4 {
		t.Errorf("the id %s is no random UUID", e.EventID)
	}
	if _, err := client.AppendToStream(f.context(), "t", kurrentdb.AppendToStreamOptions{}, kurrentdb.EventData{
		EventType: "paid", ContentType: kurrentdb.ContentTypeJson, Data: []byte("{}"), Metadata: []byte(`{"$correlationId":"43"}`),
	}); err != nil {
		t.Fatal(err)
	}
	m := f.receive(f.consumer(c, "t", "", nil), 2)[1]
	if string(m.Key) != "43" || string(m.Body) != "{}" || m.Properties["eventType"] != "paid" {
		t.Errorf("the driver receives %+v", m)
	}
}
