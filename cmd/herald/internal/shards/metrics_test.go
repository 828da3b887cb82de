// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/test/must"
)

// reported returns the processes whose metrics report each shard as held, in the shards' order.
func (in *installation) reported(running ...*process) string {
	holders := map[string]string{}
	for _, p := range running {
		for shard, value := range p.series(in.t, "herald_shard_held") {
			if value == 1 {
				holders[shard] += p.name
			}
		}
	}
	return in.join(holders)
}

// series returns the values of a metric, by shard.
func (p *process) series(t *testing.T, name string) map[string]float64 {
	t.Helper()
	families, err := p.metrics.Gather()
	must.Succeed(t, err)
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name {
				values[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return values
}

func TestMetrics(t *testing.T) {
	type values = map[string]float64
	for _, tt := range []struct {
		name, reason string
		// before and then change the installation before and after its replica has started.
		before          func(*installation)
		then            func(*installation, *process)
		held, takeovers values
	}{
		{
			name: "held", reason: "each shard has a series, so that a query can name those that nobody holds",
			held: values{"00": 1, "01": 1}, takeovers: values{"00": 1, "01": 1},
		},
		{
			name: "the posts cannot be listed", reason: "nothing is delivered, and no other metric shows it",
			before: func(in *installation) { in.unlisted.Store(true) },
			held:   values{"00": 0, "01": 0}, takeovers: values{"00": 1, "01": 1},
		},
		{
			name: "no leader since the start", reason: "the number is unknown, and the posts of the configured shards may wait",
			before: func(in *installation) { in.stated.Store(-1) },
			held:   values{"00": 0, "01": 0}, takeovers: values{"00": 0, "01": 0},
		},
		{
			name: "no leader any more", reason: "the shards are still delivered",
			then: func(in *installation, _ *process) { in.stated.Store(-1) },
			held: values{"00": 1, "01": 1}, takeovers: values{"00": 1, "01": 1},
		},
		{
			name: "the leader has one shard", reason: "it delivers all posts, so nobody has to hold a shard",
			then: func(in *installation, _ *process) { in.stated.Store(int64(0)) },
			held: values{}, takeovers: values{"00": 1, "01": 1},
		},
		{
			name: "the leader has more shards", reason: "the replicas with that number report them",
			then: func(in *installation, _ *process) { in.stated.Store(4) },
			held: values{}, takeovers: values{"00": 1, "01": 1},
		},
		{
			name: "the API server cannot be reached", reason: "the process stops claiming before others may take over",
			then: func(_ *installation, a *process) { a.cut.Store(true) },
			held: values{"00": 0, "01": 0}, takeovers: values{"00": 1, "01": 1},
		},
		{
			name: "the API server can be reached again", reason: "each take-over gives the shard another version",
			then: func(_ *installation, a *process) {
				a.cut.Store(true)
				after(10 * time.Second)
				a.cut.Store(false)
			},
			held: values{"00": 1, "01": 1}, takeovers: values{"00": 2, "01": 2},
		},
		{
			name: "the process stops", reason: "it may run for minutes until its calls are recorded",
			then: func(_ *installation, a *process) { a.stop() },
			held: values{"00": 0, "01": 0}, takeovers: values{"00": 1, "01": 1},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := newInstallation(t, 2)
				if tt.before != nil {
					tt.before(in)
				}
				a := in.start("a")
				after(5 * time.Second)
				if tt.then != nil {
					tt.then(in, a)
				}
				after(10 * time.Second)
				got := [2]values{a.series(t, "herald_shard_held"), a.series(t, "herald_shard_takeovers_total")}
				if diff := cmp.Diff([2]values{tt.held, tt.takeovers}, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
				}
				in.end(a)
			})
		})
	}
}
