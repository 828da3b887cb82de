// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

const (
	// goalB3 is how late the platform may hear of a post, for 99 of a hundred, in milliseconds.
	goalB3 = 50.0
	// perMinute is how many posts are due in a minute.
	perMinute = 100
	// firstDue is how long after the first post's creation the first minute begins, for each post.
	firstDue = 30 * time.Millisecond
	// latenessMetric is the manager's own measure of it, to the moment before the call.
	latenessMetric = "herald_schedule_lateness_seconds_bucket"
)

// lateness is what B3 measured, in milliseconds: from the scheduled time of a post to its creation on the platform.
type lateness struct {
	P99     float64 `json:"p99_ms"`
	Goal    float64 `json:"goal"`
	Met     bool    `json:"met"`
	P50     float64 `json:"p50_ms"`
	Max     float64 `json:"max_ms"`
	Min     float64 `json:"min_ms"`
	Posts   int     `json:"posts"`
	Manager float64 `json:"manager_histogram_p99_below_ms"`
}

// runB3 schedules posts through the REST API at random milliseconds and looks when each arrived on the platform.
func runB3(ctx context.Context, s *session, r *report) error {
	if err := s.stack.StartHerald(ctx); err != nil {
		return err
	}
	posts := max(int(s.b3Minutes*perMinute), 1)
	due, err := s.scheduleAtRandom(ctx, posts)
	if err != nil {
		return err
	}
	s.sayf("  B3: %d posts are scheduled over the next %.1f minutes", posts, s.b3Minutes)
	if _, err := s.awaitNone(ctx, notFinished); err != nil {
		return err
	}
	l, err := s.lateness(ctx, due)
	if err != nil {
		return err
	}
	if err := s.stack.StopHerald(); err != nil {
		return err
	}
	r.add("B3", l)
	r.limit("B3", "schedule lateness, 99th percentile", fmt.Sprintf("%.0f ms", l.P99), fmt.Sprintf("≤ %.0f ms", goalB3), l.Met)
	return s.clear(ctx)
}

// scheduleAtRandom creates posts through the REST API, perMinute for each minute at random milliseconds, spread over all
// accounts, and returns when each is due by its text.
func (s *session) scheduleAtRandom(ctx context.Context, posts int) (map[string]time.Time, error) {
	type order struct {
		team stack.Team
		body []byte
	}
	begin := time.Now().Add(5*time.Second + time.Duration(posts)*firstDue).Truncate(time.Millisecond)
	due := map[string]time.Time{}
	orders := make([]order, posts)
	for i := range orders {
		window := min(time.Minute, time.Duration(s.b3Minutes*float64(time.Minute))-time.Duration(i/perMinute)*time.Minute)
		at := begin.Add(time.Duration(i/perMinute) * time.Minute).Add(rand.N(max(window, time.Second)).Truncate(time.Millisecond))
		text := fmt.Sprintf("A post that is to be in time, number %d", i)
		due[text] = at
		team := s.connected[i%len(s.connected)]
		body, err := json.Marshal(map[string]any{
			"category": v1alpha1.CategoryText, "scheduled_at": v1alpha1.NewTime(at).String(),
			"targets": []map[string]string{{"connection_id": team.Connections[i/len(s.connected)%len(team.Connections)].Name, "caption": text}},
		})
		if err != nil {
			return nil, err
		}
		orders[i] = order{team, body}
	}
	err := inParallel(ctx, orders, func(ctx context.Context, o order) error { return s.createByREST(ctx, o.team.Token, o.body) })
	if err == nil && time.Now().After(begin) {
		err = fmt.Errorf("creating %d posts took longer than expected, and the first are past their time; try again on an idle machine", posts)
	}
	return due, err
}

func (s *session) createByREST(ctx context.Context, token string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.stack.PostsURL(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusCreated {
		err = fmt.Errorf("herald answers %s: %s", response.Status, answer)
	}
	return err
}

// lateness compares when posts were due with when the platform created them.
func (s *session) lateness(ctx context.Context, due map[string]time.Time) (lateness, error) {
	published, err := s.stack.Sandbox.Posts(ctx, string(v1alpha1.PlatformX), "")
	if err != nil {
		return lateness{}, err
	}
	if len(published) != len(due) {
		return lateness{}, fmt.Errorf("%d posts were scheduled and %d published", len(due), len(published))
	}
	late := make([]float64, 0, len(due))
	for i := range published {
		at, ok := due[published[i].Text]
		if !ok {
			return lateness{}, fmt.Errorf("nobody scheduled %q", published[i].Text)
		}
		late = append(late, float64(published[i].CreatedAt.Sub(at).Microseconds())/1000)
	}
	l := lateness{
		P99: measure.Quantile(late, 0.99), P50: measure.Quantile(late, 0.5), Max: measure.Quantile(late, 1), Min: measure.Quantile(late, 0),
		Goal: goalB3, Posts: len(late),
	}
	l.Met = l.P99 <= goalB3
	buckets, err := scrape(ctx, http.DefaultClient, s.stack.ManagerMetricsURL(), latenessMetric)
	if err != nil {
		return lateness{}, err
	}
	if bound, ok := measure.HistogramQuantile(buckets, 0.99); ok {
		l.Manager = 1000 * bound
	}
	return l, nil
}
