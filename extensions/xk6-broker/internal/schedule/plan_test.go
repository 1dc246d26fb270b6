package schedule_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	stages := []schedule.Stage{{Target: perSecond(100), Duration: time.Second}, {Duration: time.Second}}
	constant, ramp := schedule.Constant(perSecond(100), 2*time.Second), schedule.Ramp(perSecond(10), stages...)
	for _, c := range []struct {
		plan schedule.Plan
		want schedule.Schedule
	}{
		{schedule.Plan{Rate: perSecond(100), Duration: 2 * time.Second}, constant},
		{schedule.Plan{Rate: perSecond(100), Duration: 2 * time.Second, Arrivals: "constant", Seed: 3}, constant},
		{schedule.Plan{Rate: perSecond(100), Duration: 2 * time.Second, Arrivals: "poisson", Seed: 3}, schedule.Poisson(constant, 3)},
		{schedule.Plan{StartRate: perSecond(10), Stages: stages}, ramp},
		{schedule.Plan{StartRate: perSecond(10), Stages: stages, Arrivals: "poisson"}, schedule.Poisson(ramp, 0)},
	} {
		s, err := c.plan.Schedule()
		if err != nil {
			t.Errorf("%+v: %v", c.plan, err)
			continue
		}
		if !slices.Equal(all(t, s), all(t, c.want)) {
			t.Errorf("%+v is %v, want %v", c.plan, s, c.want)
		}
	}
	if s, err := (schedule.Plan{Rate: perSecond(1)}).Schedule(); err != nil {
		t.Errorf("a plan without end: %v", err)
	} else if n, ok := schedule.Count(s); ok {
		t.Errorf("a plan without end has %d arrivals", n)
	}
}

func TestPlanErrors(t *testing.T) {
	t.Parallel()
	up := []schedule.Stage{{Target: perSecond(10), Duration: time.Second}}
	for want, plan := range map[string]schedule.Plan{
		`option "rate" is missing or 0`:                         {},
		`option "rate": 0/s: it must be more than 0`:            {Rate: perSecond(0)},
		`option "rate": -5/s: -5 per 1s is no rate`:             {Rate: perSecond(-5)},
		`option "rate": 2000000000/s: 2000000000 per 1s is no`:  {Rate: perSecond(2e9)},
		`option "duration": -1s is not 0 or more`:               {Rate: perSecond(1), Duration: -time.Second},
		`option "startRate" is for "stages"`:                    {StartRate: perSecond(5), Rate: perSecond(1)},
		`option "arrivals": "uniform" is not one of`:            {Rate: perSecond(1), Arrivals: "uniform"},
		`option "stages" excludes "rate" and "duration"`:        {Rate: perSecond(1), Stages: up},
		`option "stages" excludes "rate" and`:                   {Duration: time.Minute, Stages: up},
		`option "startRate": -1 per 1s is no rate`:              {StartRate: perSecond(-1), Stages: up},
		`option "stages[1].target": 1 per 0s is no rate`:        {Stages: append(up, schedule.Stage{Target: schedule.Rate{Events: 1}})},
		`option "stages[1].duration": -1ns is not 0 or more`:    {Stages: append(up, schedule.Stage{Duration: -1})},
		`option "stages": all stages together take longer than`: {Stages: append(up, schedule.Stage{Duration: 1<<63 - 1})},
		`option "stages": the rate is never above 0`:            {Stages: []schedule.Stage{{Target: perSecond(10)}}},
	} {
		if s, err := plan.Schedule(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v is %v, %v, want an error that begins with %q", plan, s, err, want)
		}
	}
}
