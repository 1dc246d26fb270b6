package e2e

import (
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// Whatever form a script gives a message arrives as it was, and a receipt says when it was sent and confirmed.
func TestFormsOfMessages(t *testing.T) {
	r := harness.K6(t, nil, "run", "--quiet", harness.Script(t, `
import broker from 'k6/x/broker';
import { fail } from 'k6';
const conn = broker.connect('embedded:');
const producer = conn.producer('forms');
const consumer = conn.consumer('forms', { group: 'g', start: 'earliest' });
const bytes = new Uint8Array([0, 104, 105, 0]).subarray(1, 3);
const forms = [
  ['string', 'hi', 'hi'],
  ['ArrayBuffer', new Uint8Array([104, 105]).buffer, 'hi'],
  ['typed array', bytes, 'hi'],
  ['object with a string', { body: 'hi' }, 'hi'],
  ['object with an ArrayBuffer', { body: new Uint8Array([104, 105]).buffer }, 'hi'],
  ['object with a typed array', { body: bytes }, 'hi'],
  ['object with JSON', { body: { a: [1, 'x'] } }, '{"a":[1,"x"]}'],
  ['object with an empty body', { body: '' }, ''],
  ['object with a DataView', { body: new DataView(bytes.buffer, 1, 2) }, 'hi'],
  ['object that looks like bytes', { body: { buffer: bytes.buffer, byteOffset: 100, byteLength: -4 } }, '{"buffer":{},"byteOffset":100,"byteLength":-4}'],
];
export async function setup() { await conn.createTopic('forms'); }
export default async function () {
  for (const [name, message, want] of forms) {
    const receipt = await producer.send(message);
    for (const key of ['sequence', 'due', 'sent', 'latency', 'time']) {
      if (typeof receipt[key] !== 'number') fail(name + ': receipt.' + key + ' is ' + receipt[key]);
    }
    if (receipt.then !== undefined || receipt.latency < receipt.time) fail(name + ': the receipt is ' + JSON.stringify(receipt));
    const keys = Object.keys(JSON.parse(JSON.stringify(receipt))).sort().join();
    if (keys !== 'due,latency,position,sent,sequence,time') fail(name + ': a receipt has ' + keys);
    const [got] = await consumer.receive({ max: 1 });
    if (typeof got.position !== 'number' || got.position !== receipt.position) fail(name + ': sent to ' + receipt.position + ', received from ' + got.position);
    if (got.partition !== undefined || !(got.timestamp >= receipt.sent - 60e3 && got.timestamp <= Date.now() + 60e3)) fail(name + ': ' + JSON.stringify(got));
    if (got.text() !== want) fail(name + ': received ' + got.text());
    await consumer.ack([got]);
  }
  const receipts = await producer.send(['a', { body: 'b' }]);
  if (receipts.length !== 2 || receipts[1].sequence !== receipts[0].sequence + 1) fail('receipts: ' + JSON.stringify(receipts));
  for (const [name, wrong] of [['no body', { text: 'hi' }], ['undefined', undefined], ['null', null], ['an empty array', []],
    ['only a buffer', { buffer: bytes.buffer }], ['an endless array', new Array(4294967295)]]) {
    let thrown;
    try { await producer.send(wrong); } catch (e) { thrown = e; }
    if (!thrown || !String(thrown).includes('send: ')) fail(name + ': ' + thrown);
  }
  console.log('all forms arrived');
}
`))
	if r.Code != 0 || !strings.Contains(r.Stderr+r.Stdout, "all forms arrived") {
		t.Error(r)
	}
}
