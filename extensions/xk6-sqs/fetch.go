package sqs

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// attributes are the attributes that the service is asked for.
var attributes = []types.MessageSystemAttributeName{
	types.MessageSystemAttributeNameApproximateReceiveCount,
	types.MessageSystemAttributeNameSentTimestamp,
	types.MessageSystemAttributeNameMessageGroupId,
}

// fetch is one long poll.
func (r *consumer) fetch(_ context.Context, most int) ([]*delivery, error) {
	within, cancel := context.WithTimeout(r.Fetching(), r.wait+r.conn.timeout)
	defer cancel()
	out, err := r.client.ReceiveMessage(within, &sqs.ReceiveMessageInput{
		QueueUrl:                    &r.url,
		MaxNumberOfMessages:         int32(most), //gosec:disable G115 -- the option has limits
		WaitTimeSeconds:             int32(r.wait / time.Second),
		VisibilityTimeout:           int32(r.visibility / time.Second),
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: attributes,
	})
	if err != nil {
		return nil, r.conn.reason(r.Fetching(), within, err)
	}
	now := driver.Now()
	all := make([]*delivery, len(out.Messages))
	for i := range out.Messages {
		all[i] = r.delivery(&out.Messages[i], now)
	}
	return all, nil
}

func (r *consumer) delivery(m *types.Message, now int64) *delivery {
	d := &delivery{Handle: handle{receipt: m.ReceiptHandle}, Message: driver.Message{Topic: r.topic, Received: now}}
	system := func(name types.MessageSystemAttributeName) string { return m.Attributes[string(name)] }
	count, _ := strconv.ParseInt(system(types.MessageSystemAttributeNameApproximateReceiveCount), 10, 32)
	d.Message.Attempt = int32(count)
	d.Handle.sent, _ = strconv.ParseInt(system(types.MessageSystemAttributeNameSentTimestamp), 10, 64)
	if r.groups != nil {
		group := system(types.MessageSystemAttributeNameMessageGroupId)
		d.Message.Key, d.Message.Partition = keyOf(group), r.groups.number(group)
	}
	body, decoded := aws.ToString(m.Body), false
	if aws.ToString(m.MessageAttributes[encodingAttribute].StringValue) == base64Encoding {
		if d.Message.Body, decoded = decodeBody(body); decoded {
			delete(m.MessageAttributes, encodingAttribute)
		}
	}
	if !decoded {
		d.Message.Body = []byte(body)
	}
	d.Message.Headers = decodeAttributes(m.MessageAttributes)
	return d
}
