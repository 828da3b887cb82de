// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// hostileID is the benchmark with a hostile team. It runs alone, because it uses an installation's request limits,
// which the other benchmarks do not have.
const hostileID = "B-HOSTILE"

// The goals for a hostile team's neighbours, and for the processes that they share with it.
const (
	goalHostileLateness = 250.0
	goalHostileMiB      = 512.0
	hostileMinutes      = 10
	// besideEvery is the interval at which a neighbour lists posts and schedules one a few seconds ahead, in addition
	// to its other scheduled posts.
	besideEvery = 2 * time.Second
)

// hostility is the result for a hostile team and its neighbours.
type hostility struct {
	lateness
	Lost  int `json:"lost"`
	Twice int `json:"twice"`
	// Refused is the number of the neighbours' requests that failed, out of Requests.
	Refused  int `json:"refused"`
	Requests int `json:"requests"`
	// ManagerMiB and APIServerMiB are the peak memory, as the kernel counts it.
	ManagerMiB   float64 `json:"manager_mib"`
	APIServerMiB float64 `json:"apiserver_mib"`
	// EtcdMiB is the growth of etcd's data without its history. BudgetMiB is the team's storage budget.
	EtcdMiB   float64 `json:"etcd_mib"`
	BudgetMiB float64 `json:"budget_mib"`
	// Attacks counts the responses to each attack, by status or error.
	Attacks map[string]map[string]int `json:"attacks"`
}

// runHostile measures the effect of a hostile team on other teams. The usual limits apply to all of them.
func runHostile(ctx context.Context, s *session, r *report, id string) error {
	if err := s.stack.StartHerald(ctx); err != nil {
		return err
	}
	h, err := s.beset(ctx)
	if err := errors.Join(err, s.stack.StopHerald()); err != nil {
		return err
	}
	r.add(id, h)
	r.limit(id, "lateness next to a hostile team, 99th percentile", fmt.Sprintf("%.0f ms", h.P99), fmt.Sprintf("≤ %.0f ms", goalHostileLateness), h.P99 <= goalHostileLateness)
	r.limit("", "posts of other teams: lost, published twice", fmt.Sprintf("%d, %d", h.Lost, h.Twice), "0, 0", h.Lost+h.Twice == 0)
	r.limit("", "failed requests of other teams", fmt.Sprintf("%d of %d", h.Refused, h.Requests), "0", h.Refused == 0)
	r.limit("", "manager's memory, at most", fmt.Sprintf("%.0f MiB", h.ManagerMiB), fmt.Sprintf("≤ %.0f MiB", goalHostileMiB), h.ManagerMiB <= goalHostileMiB)
	r.limit("", "apiserver's memory, at most", fmt.Sprintf("%.0f MiB", h.APIServerMiB), fmt.Sprintf("≤ %.0f MiB", goalHostileMiB), h.APIServerMiB <= goalHostileMiB)
	r.limit("", "etcd's growth, all teams", fmt.Sprintf("%.0f MiB", h.EtcdMiB), fmt.Sprintf("≤ %.0f MiB", h.BudgetMiB), h.EtcdMiB <= h.BudgetMiB)
	for _, name := range slices.Sorted(maps.Keys(h.Attacks)) {
		s.logf("  %-34s %s", name, tally(h.Attacks[name]))
	}
	return nil
}

// beset runs the attacks and the neighbours, and measures the effects.
func (s *session) beset(ctx context.Context) (hostility, error) {
	enemy, err := s.newEnemy(ctx)
	if err != nil {
		return hostility{}, err
	}
	minutes := hostileMinutes * s.scale
	t := &timely{session: s, content: s.texts()}
	t.b3Minutes = minutes
	due, begin, err := t.schedule(ctx, max(int(minutes*perMinute), 1))
	if err != nil {
		return hostility{}, err
	}
	before, err := s.stack.StoredBytes(ctx)
	if err != nil {
		return hostility{}, err
	}
	pids := map[string]int{}
	for _, p := range s.stack.Herald() {
		pids[p.Name] = p.PID()
	}
	s.logf("  %s: %d posts of other teams are due within %.1f minutes; the hostile team starts", hostileID, len(due), minutes)
	end := begin.Add(time.Duration(minutes * float64(time.Minute)))
	attacking, stop := context.WithDeadline(ctx, end)
	defer stop()
	n := &neighbour{session: s, due: due}
	var all sync.WaitGroup
	enemy.attack(attacking, &all)
	all.Go(func() { repeat(attacking, besideEvery, func(nth int) { n.use(attacking, nth) }) })
	all.Wait()
	if ctx.Err() != nil {
		return hostility{}, context.Cause(ctx)
	}
	h := hostility{Attacks: enemy.answers, BudgetMiB: enemy.budgetMiB, Refused: n.refused, Requests: n.requests}
	if err := s.settled(ctx, end, n.due); err != nil {
		return h, err
	}
	for _, p := range s.stack.Herald() {
		if pids[p.Name] != p.PID() {
			return h, fmt.Errorf("%s died and was restarted", p.Name)
		}
		_, peak := stack.Memory(p.PID())
		if strings.Contains(p.Name, "manager") {
			h.ManagerMiB = float64(peak) / (1 << 20)
		} else {
			h.APIServerMiB = float64(peak) / (1 << 20)
		}
	}
	after, err := s.stack.StoredBytes(ctx)
	h.EtcdMiB = float64(after-before) / (1 << 20)
	return h, errors.Join(err, h.measureDelays(ctx, s, n.due))
}

// settled waits until the other teams' posts are published, or until a minute after the last one was due.
func (s *session) settled(ctx context.Context, end time.Time, due map[string]time.Time) error {
	return until(ctx, time.Second, "the other teams' posts are published", func(ctx context.Context) (bool, error) {
		published, err := s.shown(ctx, []v1alpha1.Platform{v1alpha1.PlatformX})
		there := 0
		for i := range published {
			if _, ok := due[published[i].Text]; ok {
				there++
			}
		}
		return there >= len(due) || time.Now().After(end.Add(time.Minute)), err
	})
}

// measureDelays compares the due times of the neighbours' posts with the times at which they were published.
func (h *hostility) measureDelays(ctx context.Context, s *session, due map[string]time.Time) error {
	published, err := s.shown(ctx, []v1alpha1.Platform{v1alpha1.PlatformX})
	if err != nil {
		return err
	}
	var late []float64
	times := map[string]int{}
	for i := range published {
		at, ours := due[published[i].Text]
		if !ours {
			continue
		}
		times[published[i].Text]++
		if times[published[i].Text] > 1 {
			h.Twice++
			continue
		}
		late = append(late, float64(published[i].CreatedAt.Sub(at).Microseconds())/1000)
	}
	h.Lost = len(due) - len(late)
	h.lateness = lateness{
		P99: measure.Quantile(late, 0.99), P50: measure.Quantile(late, 0.5), Max: measure.Quantile(late, 1), Goal: goalHostileLateness, Posts: len(late),
	}
	h.Met = h.P99 <= goalHostileLateness
	return nil
}

// neighbour is an ordinary client during the attacks: it lists its posts, and schedules some a few seconds ahead.
type neighbour struct {
	*session
	due               map[string]time.Time
	refused, requests int
}

// use schedules a post and lists posts.
func (n *neighbour) use(ctx context.Context, nth int) {
	const ahead = 5 * time.Second
	team := n.connected[nth%len(n.connected)]
	at := time.Now().Add(ahead).Truncate(time.Millisecond)
	text := fmt.Sprintf("A post in between, number %d", nth)
	posted := call(ctx, http.MethodPost, n.stack.APIURL("/posts"), team.Token, map[string]any{
		"category": v1alpha1.CategoryText, "scheduled_at": v1alpha1.NewTime(at).String(),
		"targets": []map[string]string{{"connection_id": team.Connections[nth%len(team.Connections)].Name, "caption": text}},
	}, nil)
	if posted == nil {
		n.due[text] = at
	}
	listed := call(ctx, http.MethodGet, n.stack.APIURL("/posts"), team.Token, nil, nil)
	if ctx.Err() != nil {
		return // the run is over, which cancelled the request
	}
	n.requests++
	if err := errors.Join(posted, listed); err != nil {
		n.refused++
		n.logf("  a neighbour's request failed: %v", err)
	}
}

// repeat calls once repeatedly, with pauses, until ctx is done.
func repeat(ctx context.Context, pause time.Duration, once func(nth int)) {
	for nth := 0; ctx.Err() == nil; nth++ {
		once(nth)
		_ = waitUntil(ctx, time.Now().Add(pause)) // the loop also ends when ctx is done
	}
}
