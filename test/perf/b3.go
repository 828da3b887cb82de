// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

const (
	// goalB3 is the goal for the 99th percentile of the delay, in milliseconds.
	goalB3 = 50.0
	// perMinute is the number of posts due per minute.
	perMinute = 100
)

// lateness is B3's result in milliseconds: the time from a post's scheduled time until it is created on the platform.
type lateness struct {
	P99   float64 `json:"p99_ms"`
	Goal  float64 `json:"goal"`
	Met   bool    `json:"met"`
	P50   float64 `json:"p50_ms"`
	Max   float64 `json:"max_ms"`
	Posts int     `json:"posts"`
	// Prepared is the number of posts that were prepared before the first one was due.
	Prepared int `json:"prepared,omitempty"`
	// Platforms is the 99th percentile on each platform.
	Platforms map[string]float64 `json:"platforms_p99_ms,omitempty"`
}

// timely contains the common parts of B3 and B3M.
type timely struct {
	*session
	*content
}

// runB3 schedules posts at random milliseconds through the REST API and reads their publication times from the
// platforms. B3M does the same with image posts, alternating between X and Threads, which are prepared before they are
// due.
func runB3(ctx context.Context, s *session, r *report, id string) error {
	var l lateness
	err := s.prepare(ctx, func() error {
		c, err := s.contentOf(ctx, id)
		if err == nil {
			l, err = (&timely{s, c}).measure(ctx, id)
		}
		return err
	})
	if err != nil {
		return err
	}
	r.add(id, l)
	what := "schedule lateness"
	if len(l.Platforms) > 1 {
		what += " of posts with an image, prepared before"
	}
	r.limit(id, what+", 99th percentile", fmt.Sprintf("%.0f ms", l.P99), fmt.Sprintf("≤ %.0f ms", goalB3), l.Met)
	return nil
}

// measure schedules the posts, waits for them and returns their lateness.
func (t *timely) measure(ctx context.Context, id string) (lateness, error) {
	posts := max(int(t.b3Minutes*perMinute), 1)
	due, begin, err := t.schedule(ctx, posts)
	if err != nil {
		return lateness{}, err
	}
	t.logf("  %s: %d posts are scheduled over the next %.1f minutes", id, posts, t.b3Minutes)
	prepared := 0
	if len(t.images) > 0 {
		if err := waitUntil(ctx, begin); err != nil {
			return lateness{}, err
		}
		left, err := t.unprepared(ctx)
		if err != nil {
			return lateness{}, err
		}
		prepared = posts - left
	}
	// Looking for unfinished posts costs the API server processor time, so B3 does not look before the last one is due.
	if err := waitUntil(ctx, slices.MaxFunc(slices.Collect(maps.Values(due)), time.Time.Compare)); err != nil {
		return lateness{}, err
	}
	if _, err := t.awaitNone(ctx, notFinished); err != nil {
		return lateness{}, err
	}
	l, err := t.lateness(ctx, due)
	l.Prepared = prepared
	return l, err
}

// schedule creates perMinute posts for each minute through the REST API, at random milliseconds and spread over all
// accounts. It returns their due times by text, and the start of the first minute.
func (t *timely) schedule(ctx context.Context, posts int) (map[string]time.Time, time.Time, error) {
	type order struct {
		team stack.Team
		body []byte
	}
	begin := time.Now().Add(5*time.Second + time.Duration(posts)*t.restLead).Truncate(time.Millisecond)
	due := map[string]time.Time{}
	orders := make([]order, posts)
	for i := range orders {
		window := min(time.Minute, time.Duration(t.b3Minutes*float64(time.Minute))-time.Duration(i/perMinute)*time.Minute)
		at := begin.Add(time.Duration(i/perMinute) * time.Minute).Add(rand.N(max(window, time.Second)).Truncate(time.Millisecond))
		text := fmt.Sprintf("A post that must be on time, number %d", i)
		due[text] = at
		team := t.teams[i%len(t.teams)]
		// The accounts are ordered by platform, and each platform receives the same number of posts.
		nth := i / len(t.teams)
		accounts := len(team.Connections) / len(t.platforms)
		to := team.Connections[nth%len(t.platforms)*accounts+nth/len(t.platforms)%accounts]
		request := map[string]any{
			"category": v1alpha1.CategoryText, "scheduled_at": v1alpha1.NewTime(at).String(),
			"targets": []map[string]string{{"connection_id": to.Name, "caption": text}},
		}
		if shown := t.picture(team, nth); shown != "" {
			request["category"], request["media_ids"] = v1alpha1.CategoryImage, []string{shown}
		}
		body, err := json.Marshal(request)
		if err != nil {
			return nil, begin, err
		}
		orders[i] = order{team, body}
	}
	err := inParallel(ctx, orders, func(ctx context.Context, o order) error { return t.createByREST(ctx, o.team, o.body) })
	if err == nil && time.Now().After(begin) {
		err = fmt.Errorf("creating %d posts took longer than expected, and the first are already due; try again on an idle machine", posts)
	}
	return due, begin, err
}

func (s *session) createByREST(ctx context.Context, team stack.Team, body []byte) error {
	return call(ctx, http.MethodPost, s.stack.APIURL("/posts"), team.Token, json.RawMessage(body), nil)
}

// lateness compares the due times with the creation times on the platforms.
func (t *timely) lateness(ctx context.Context, due map[string]time.Time) (lateness, error) {
	published, err := t.shown(ctx, t.platforms)
	if err != nil {
		return lateness{}, err
	}
	if len(published) != len(due) {
		return lateness{}, errors.Join(fmt.Errorf("%d posts were scheduled and %d published", len(due), len(published)), t.whyNot(ctx))
	}
	late := make([]float64, 0, len(due))
	each := map[string][]float64{}
	for i := range published {
		at, ok := due[published[i].Text]
		if !ok {
			return lateness{}, fmt.Errorf("the platform shows %q, which was not scheduled", published[i].Text)
		}
		one := float64(published[i].CreatedAt.Sub(at).Microseconds()) / 1000
		late = append(late, one)
		each[published[i].Platform] = append(each[published[i].Platform], one)
	}
	l := lateness{
		P99: measure.Quantile(late, 0.99), P50: measure.Quantile(late, 0.5), Max: measure.Quantile(late, 1),
		Goal: goalB3, Posts: len(late), Platforms: map[string]float64{},
	}
	for platform, values := range each {
		l.Platforms[platform] = measure.Quantile(values, 0.99)
	}
	l.Met = l.P99 <= goalB3
	return l, nil
}
