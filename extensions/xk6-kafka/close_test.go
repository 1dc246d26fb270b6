package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// What fails last is told by Close, as there is no Settle to come.
func TestCloseTellsOfTheLastCommit(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 1)
	p, c := f.producer(t, topic, nil), f.consumer(t, topic, topic, with(t, f, map[string]any{"commitInterval": "1h"}))
	f.send(t, p, numbered("m", 1))
	if err := c.Settle(within(t), take(t, c, 1), driver.Ack); err != nil {
		t.Fatal(err)
	}
	var admin *kadm.Client
	if !f.conn.(driver.Unwrapper).As(&admin) {
		t.Fatal("no admin")
	}
	described, err := admin.DescribeGroups(within(t), topic)
	if err != nil {
		t.Fatal(err)
	}
	var client *kgo.Client
	f.conn.(driver.Unwrapper).As(&client)
	leave := kmsg.NewPtrLeaveGroupRequest() // behind its back
	leave.Group = topic
	for _, m := range described[topic].Members {
		member := kmsg.NewLeaveGroupRequestMember()
		member.MemberID = m.MemberID
		leave.Members = append(leave.Members, member)
	}
	answer, err := leave.RequestWith(within(t), client)
	if err != nil || len(answer.Members) != 1 || answer.ErrorCode != 0 || answer.Members[0].ErrorCode != 0 {
		t.Fatal(answer, err)
	}
	if err := c.Close(within(t)); err == nil || f.address.Driver.KindOf(err) != driver.Rejected {
		t.Errorf("the commit of a member that left the group: %v, want kind rejected", err)
	}
}
