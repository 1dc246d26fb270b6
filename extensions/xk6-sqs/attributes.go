package sqs

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// The types of attributes. The service has no empty values, so these have a type and a placeholder.
var (
	textType   = aws.String("String")
	binaryType = aws.String("Binary")
	emptyType  = aws.String("String.empty")
)

const emptyValue = "-"

// encodeAttributes makes attributes of headers, and returns how many bytes they have.
func encodeAttributes(
	headers []driver.Header, isBase64 bool,
) (all map[string]types.MessageAttributeValue, size int, err error) {
	if len(headers) == 0 && !isBase64 {
		return nil, 0, nil
	}
	all = make(map[string]types.MessageAttributeValue, len(headers)+1)
	if isBase64 {
		all[encodingAttribute] = types.MessageAttributeValue{DataType: textType, StringValue: aws.String(base64Encoding)}
	}
	for _, h := range headers {
		if _, twice := all[h.Name]; twice {
			return nil, 0, &driver.OptionError{
				Name: "headers",
				Err:  fmt.Errorf("%q is given twice, and a message has each attribute once", h.Name),
			}
		}
		switch {
		case len(h.Value) == 0:
			all[h.Name] = types.MessageAttributeValue{DataType: emptyType, StringValue: aws.String(emptyValue)}
		case plain(h.Value):
			all[h.Name] = types.MessageAttributeValue{DataType: textType, StringValue: aws.String(string(h.Value))}
		default:
			all[h.Name] = types.MessageAttributeValue{DataType: binaryType, BinaryValue: slices.Clone(h.Value)}
		}
	}
	for name, a := range all {
		size += len(name) + len(*a.DataType) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return all, size, nil
}

// decodeAttributes makes headers of attributes, by name, as the service does not keep their order.
func decodeAttributes(all map[string]types.MessageAttributeValue) []driver.Header {
	if len(all) == 0 {
		return nil
	}
	headers := make([]driver.Header, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a := all[name]
		value := a.BinaryValue
		if a.StringValue != nil && aws.ToString(a.DataType) != *emptyType {
			value = []byte(*a.StringValue)
		}
		headers = append(headers, driver.Header{Name: name, Value: value})
	}
	return headers
}
