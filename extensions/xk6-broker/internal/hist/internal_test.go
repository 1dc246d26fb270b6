package hist

import "testing"

// A record raises the maximum, or lowers the minimum, before it counts the value. This is a snapshot taken in between.
func TestSnapshotAmidARecordFitsItself(t *testing.T) {
	r := NewRecorder(1)
	r.Record(0, 5000)
	r.shards[0].Load().min.Store(1)
	r.shards[0].Load().max.Store(9_000_000)
	before := r.Snapshot()
	if before.Min() != lowest(index(5000)) || before.Max() != highest(index(5000)) || before.Quantile(1) != before.Max() {
		t.Errorf("of the value 5000, the snapshot tells %d to %d", before.Min(), before.Max())
	}
	r.Record(0, 1)
	r.Record(0, 9_000_000)
	after := r.Snapshot()
	if interval := after.Sub(before); after.Min() != 1 || after.Max() != 9_000_000 || interval.Min() != 1 || interval.Max() != 9_000_000 {
		t.Errorf("the snapshot after it tells %d to %d, the interval %d to %d",
			after.Min(), after.Max(), interval.Min(), interval.Max())
	}
}
