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
	// maxDocument is what a server takes as one document.
	maxDocument = 16 << 20
	// maxBody is what is left of it for the body of a message that has no large key or headers.
	maxBody = maxDocument - 16<<10
)

// encode makes a document of a message, to be delivered from due on.
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
		err = &driver.OptionError{Name: "headers", Err: fmt.Errorf("with them and its key the message is a document of %d bytes, which may have %d", len(doc), maxDocument)}
	}
	return doc, err
}

// appendHeaders keeps headers in their order. A value that is no text is binary.
func appendHeaders(doc []byte, all []driver.Header) ([]byte, error) {
	list, doc := bsoncore.AppendArrayElementStart(doc, "headers")
	for i, h := range all {
		if !utf8.ValidString(h.Name) {
			return nil, &driver.OptionError{Name: "headers", Err: fmt.Errorf("the name %q is not text in UTF-8", h.Name)}
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

// decode fills a delivery from a document. What other programs have put there as something else than bytes comes as text, or as JSON.
func (d *delivery) decode(doc bson.Raw) error {
	elements, err := doc.Elements()
	if err != nil {
		return fmt.Errorf("a document that cannot be read: %w", err)
	}
	m := &d.message
	for _, e := range elements {
		v := e.Value()
		switch e.Key() {
		case "_id":
			d.id = v
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
			all = append(all, driver.Header{Name: string(content(h.Lookup("name"))), Value: content(h.Lookup("value"))})
		}
	}
	return all
}

// content is the bytes of a value; nil of null, and of none.
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
