package load

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// logBlock is how much of a log's text is kept in memory. A short run is never spooled.
const logBlock = 64 << 10

// intervalLog is a log in the making: each interval is encoded at once, as a few KiB of text.
type intervalLog struct {
	log    *hist.Log
	blocks []block      // of the spool
	text   bytes.Buffer // what comes after them
}

// logs are the interval logs of a run. Where they can be kept no longer they end, all at the same interval, and the run goes on.
type logs struct {
	started time.Time
	of      map[topicKey]map[metric.Trend]*intervalLog
	spool   spool
	cut     error // why they have ended early, and when
}

// write adds an interval to a log.
func (l *logs) write(key topicKey, t metric.Trend, tag string, from, to int64, interval *hist.Histogram) {
	if l.cut != nil {
		return
	}
	trends := l.of[key]
	if trends == nil {
		trends = map[metric.Trend]*intervalLog{}
		l.of[key] = trends
	}
	log := trends[t]
	if log == nil {
		log = &intervalLog{}
		log.log, _ = hist.NewLog(&log.text, l.started) // a buffer takes all that is written
		trends[t] = log
	}
	_ = log.log.Write(tag, time.Unix(0, from), time.Unix(0, to), interval)
}

// settle spools what has become long, when all of an interval is written. The error is why the logs end here.
func (l *logs) settle(now int64) error {
	if l.cut != nil {
		return nil //nolint:nilerr // it was told when the logs ended
	}
	for _, trends := range l.of {
		for _, log := range trends {
			if log.text.Len() < logBlock {
				continue
			}
			b, err := l.spool.append(log.text.Bytes())
			if err != nil {
				l.cut = fmt.Errorf("the interval logs (.hlog) end after %v: %w", time.Unix(0, now).Sub(l.started).Round(time.Second), err)
				return l.cut
			}
			log.blocks = append(log.blocks, b)
			log.text.Reset()
		}
	}
	return nil
}

// list gives the logs of a topic as they are now.
func (l *logs) list(key topicKey) (all []result.IntervalLog) {
	for trend := range metric.Trend(metric.NumTrends) {
		log := l.of[key][trend]
		if log == nil {
			continue
		}
		blocks, rest := slices.Clone(log.blocks), bytes.Clone(log.text.Bytes())
		if l.cut != nil {
			rest = fmt.Appendf(rest, "#[%v]\n", l.cut) // a comment, in this format
		}
		all = append(all, result.IntervalLog{Broker: key.address, Topic: key.name, Trend: trend, Write: func(w io.Writer) error {
			for _, b := range blocks {
				if err := b.copyTo(w); err != nil {
					return err
				}
			}
			_, err := w.Write(rest)
			return err
		}})
	}
	return all
}
