// Package remoting calls RocketMQ's name server and brokers by the remoting protocol. A frame is
// its length, the length of its header, the header as JSON and a body.
package remoting

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1" //gosec:disable G505 -- the protocol's own
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"time"
)

// Dial connects to an address.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Client makes one connection for each call, because calls are rare.
type Client struct {
	Dial        Dial
	Timeout     time.Duration // of one call
	User        string        // the access key; empty where there is none
	Password    string        // its secret
	Description string        // what the other side calls whoever fails: "name server", "broker"
}

// Error is an answer that is not a success.
type Error struct {
	Code   int
	Text   string // the first line of what the server says
	server string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: code %d: %s", e.server, e.Code, e.Text) }

// header is that of a request and of an answer.
type header struct {
	Code     int               `json:"code"`
	Language string            `json:"language"`
	Version  int               `json:"version"`
	Opaque   int               `json:"opaque"`
	Flag     int               `json:"flag"`
	Remark   string            `json:"remark,omitempty"`
	Fields   map[string]string `json:"extFields,omitempty"`
}

// most is more than any answer has.
const most = 64 << 20

// Call returns the fields and the body of the answer. Its errors are an [*Error], those of the
// network, and ctx's.
func (c *Client) Call(
	ctx context.Context, address string, code int, fields map[string]string, body []byte,
) (map[string]string, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	conn, err := c.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.Description, err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	answer, text, err := exchange(conn, header{Code: code, Language: "GO", Opaque: 1, Fields: c.sign(fields, body)}, body)
	if ctx.Err() != nil {
		return nil, nil, fmt.Errorf("%s: no answer: %w", c.Description, ctx.Err())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.Description, err)
	}
	if answer.Code != 0 {
		remark, _, _ := bytes.Cut([]byte(answer.Remark), []byte("\n"))
		return nil, nil, &Error{Code: answer.Code, Text: string(remark), server: c.Description}
	}
	return answer.Fields, text, nil
}

func exchange(conn net.Conn, ask header, body []byte) (answer header, text []byte, err error) {
	head, err := json.Marshal(ask)
	if err != nil {
		return answer, nil, err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(head)+len(body))) //gosec:disable G115 -- a few bytes
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(head)))            //gosec:disable G115 -- a few bytes
	if _, err := conn.Write(append(append(frame, head...), body...)); err != nil {
		return answer, nil, err
	}
	var lengths [8]byte
	if _, err := io.ReadFull(conn, lengths[:]); err != nil {
		return answer, nil, err
	}
	all := binary.BigEndian.Uint32(lengths[:4])
	size := binary.BigEndian.Uint32(lengths[4:]) & 0xffffff // the first byte is the form of the header
	if all < 4+size || all > most {
		return answer, nil, fmt.Errorf("an answer that is not of RocketMQ's remoting protocol")
	}
	rest := make([]byte, all-4)
	if _, err := io.ReadFull(conn, rest); err != nil {
		return answer, nil, err
	}
	if err := json.Unmarshal(rest[:size], &answer); err != nil {
		return answer, nil, fmt.Errorf("an answer that is not of RocketMQ's remoting protocol: %w", err)
	}
	return answer, rest[size:], nil
}

// sign adds the access key, and a code over all fields, sorted by name, and the body.
func (c *Client) sign(fields map[string]string, body []byte) map[string]string {
	if c.User == "" {
		return fields
	}
	signed := maps.Clone(fields)
	if signed == nil {
		signed = map[string]string{}
	}
	signed["AccessKey"] = c.User
	code := hmac.New(sha1.New, []byte(c.Password))
	for _, name := range slices.Sorted(maps.Keys(signed)) {
		_, _ = io.WriteString(code, signed[name])
	}
	_, _ = code.Write(body)
	signed["Signature"] = base64.StdEncoding.EncodeToString(code.Sum(nil))
	return signed
}

// number finds a number as a name without quotes, which RocketMQ writes and JSON does not allow.
var number = regexp.MustCompile(`([{,])(\d+):`)

// Unmarshal reads a body. Names of objects may be numbers; strings must not look like that.
func Unmarshal(body []byte, into any) error {
	if err := json.Unmarshal(number.ReplaceAll(body, []byte(`$1"$2":`)), into); err != nil {
		return fmt.Errorf("an answer that cannot be read: %w", err)
	}
	return nil
}
