package mongodb

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

const (
	// maxDocument is the largest document of a server.
	maxDocument = 16 << 20
	// maxBody is the largest body of a message without a large key or headers.
	maxBody = maxDocument - 16<<10
)

// encode returns the document of a message that is to be delivered at due or later.
func encode(m *driver.Message, due time.Time) (bson.Raw, error) {
	if len(m.Body) > maxBody {
		return nil, errLarge
	}
	start, doc := bsoncore.AppendDocumentStart(make([]byte, 0, len(m.Body)+len(m.Key)+128))
	doc = bsoncore.AppendObjectIDElement(doc, "_id", bson.NewObjectID())
	if m.Key != nil {
		doc = bsoncore.AppendBinaryElement(doc, "key", bson.TypeBinaryGeneric, m.Key)
	}
	if m.Body != nil {
		doc = bsoncore.AppendBinaryElement(doc, "body", bson.TypeBinaryGeneric, m.Body)
	}
	if len(m.Headers) > 0 {
		var err error
		if doc, err = appendHeaders(doc, m.Headers); err != nil {
			return nil, err
		}
	}
	doc = bsoncore.AppendDateTimeElement(doc, "nextDelivery", due.UnixMilli())
	doc = bsoncore.AppendInt32Element(doc, "attempts", 0)
	doc, err := bsoncore.AppendDocumentEnd(doc, start)
	if err == nil && len(doc) > maxDocument {
		err = fmt.Errorf("with its key and headers the document has %d bytes, more than %d", len(doc), maxDocument)
		err = &driver.OptionError{Name: "headers", Err: err}
	}
	return doc, err
}

// appendHeaders appends headers in their order. A value that is not text is binary.
func appendHeaders(doc []byte, all []driver.Header) ([]byte, error) {
	list, doc := bsoncore.AppendArrayElementStart(doc, "headers")
	for i, h := range all {
		if !utf8.ValidString(h.Name) {
			err := fmt.Errorf("the name %q is not text in UTF-8", h.Name)
			return nil, &driver.OptionError{Name: "headers", Err: err}
		}
		var item int32
		item, doc = bsoncore.AppendDocumentElementStart(doc, fmt.Sprint(i))
		doc = bsoncore.AppendStringElement(doc, "name", h.Name)
		if utf8.Valid(h.Value) {
			doc = bsoncore.AppendStringElement(doc, "value", string(h.Value))
		} else {
			doc = bsoncore.AppendBinaryElement(doc, "value", bson.TypeBinaryGeneric, h.Value)
		}
		var err error
		if doc, err = bsoncore.AppendDocumentEnd(doc, item); err != nil {
			return nil, err
		}
	}
	return bsoncore.AppendArrayEnd(doc, list)
}

// decode fills a delivery from a document. Values of other programs that are not bytes arrive as text
// or as JSON.
func decode(doc bson.Raw, d *delivery) error {
	elements, err := doc.Elements()
	if err != nil {
		return fmt.Errorf("a document that cannot be read: %w", err)
	}
	m := &d.Message
	for _, e := range elements {
		v := e.Value()
		switch e.Key() {
		case "_id":
			d.Handle.id = v
		case "key":
			m.Key = content(v)
		case "body":
			m.Body = content(v)
		case "headers":
			m.Headers = decodeHeaders(v)
		case "attempts":
			n, _ := v.AsInt64OK()
			m.Attempt = int32(min(n, math.MaxInt32)) //gosec:disable G115 -- a count, not negative
		}
	}
	return nil
}

func decodeHeaders(v bson.RawValue) []driver.Header {
	list, ok := v.ArrayOK()
	if !ok {
		return []driver.Header{{Name: "headers", Value: content(v)}}
	}
	items, err := list.Values()
	if err != nil {
		return nil
	}
	all := make([]driver.Header, 0, len(items))
	for _, item := range items {
		if h, ok := item.DocumentOK(); ok {
			name := string(content(h.Lookup("name")))
			all = append(all, driver.Header{Name: name, Value: content(h.Lookup("value"))})
		}
	}
	return all
}

// content returns the bytes of a value; nil for null and for no value.
func content(v bson.RawValue) []byte {
	switch v.Type {
	case 0, bson.TypeNull:
		return nil
	case bson.TypeBinary:
		_, data := v.Binary()
		if data == nil {
			data = []byte{}
		}
		return data
	case bson.TypeString:
		return []byte(v.StringValue())
	}
	return []byte(v.String())
}
