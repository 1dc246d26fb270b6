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

// told are the attributes that the service is asked for.
var told = []types.MessageSystemAttributeName{
	types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameSentTimestamp, types.MessageSystemAttributeNameMessageGroupId,
}

// fetch is one long poll, for [inbox.Inbox.Poll]. Its context ends none that is under way.
func (r *consumer) fetch(ctx context.Context, most int) ([]*delivery, error) {
	most, err := r.ahead.Reserve(ctx, most, most)
	if err != nil {
		return nil, err
	}
	all, err := r.poll(most)
	r.ahead.Give(most - len(all))
	return all, err
}

func (r *consumer) poll(most int) ([]*delivery, error) {
	within, cancel := context.WithTimeout(r.work, r.wait+r.conn.timeout)
	defer cancel()
	out, err := r.client.ReceiveMessage(within, &sqs.ReceiveMessageInput{
		QueueUrl: &r.url, MaxNumberOfMessages: int32(most), WaitTimeSeconds: int32(r.wait / time.Second), VisibilityTimeout: int32(r.visibility / time.Second), //gosec:disable G115 -- the option has limits
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: told,
	})
	if err != nil {
		return nil, r.conn.reason(r.work, within, err)
	}
	now := driver.Now()
	all := make([]*delivery, len(out.Messages))
	for i := range out.Messages {
		all[i] = r.delivery(&out.Messages[i], now)
	}
	return all, nil
}

func (r *consumer) delivery(m *types.Message, now int64) *delivery {
	d := &delivery{handle: m.ReceiptHandle}
	d.message = driver.Message{Topic: r.topic, Received: now}
	count, _ := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)], 10, 32)
	d.message.Attempt = int32(count)
	d.sent, _ = strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64)
	if group := m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]; r.groups != nil {
		d.message.Key, d.message.Partition = keyOf(group), r.groups.number(group)
	}
	body, decoded := aws.ToString(m.Body), false
	if aws.ToString(m.MessageAttributes[encodingAttribute].StringValue) == base64Encoding {
		if d.message.Body, decoded = decodeBody(body); decoded {
			delete(m.MessageAttributes, encodingAttribute)
		}
	}
	if !decoded {
		d.message.Body = []byte(body)
	}
	d.message.Headers = decodeAttributes(m.MessageAttributes)
	return d
}
