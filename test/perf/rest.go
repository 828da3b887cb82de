// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/bare"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// plainPosts are listed by the GET whose cost is measured, a page at a time.
const plainPosts = 1000

// operation is a request to Herald that no other process has a part in.
type operation struct {
	id, what string
	request  bare.Request
}

// served is what one side of a round gave.
type served struct {
	rate    float64
	cpu     float64
	latency bare.Latency
}

// runREST compares what a request costs Herald's apiserver with a bare HTTP server that decodes it and sends the same
// bytes. A list is answered from memory. A POST is one whose caption is too long, which is found out last: it has been
// authenticated, decoded and judged by every rule, and nothing was written.
func runREST(ctx context.Context, s *session, r *report) error {
	if err := s.stack.StartHerald(ctx); err != nil {
		return err
	}
	sample, err := s.deliveredPost(ctx)
	if err := errors.Join(err, s.stack.StopHerald()); err != nil {
		return err
	}
	if err := s.clear(ctx); err != nil {
		return err
	}
	team := s.connected[0]
	planted, err := s.stack.Plant(ctx, plainPosts, newForest(sample, team, []stack.Team{team}, plainPosts).post)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{
		"category": v1alpha1.CategoryText, "scheduled_at": time.Now().Add(farAhead).UTC().Format(time.RFC3339),
		"targets": []map[string]string{{"connection_id": team.Connections[0].Name, "caption": strings.Repeat("too long ", 40)}},
	})
	if err != nil {
		return err
	}
	values := map[string]any{}
	for _, o := range []operation{
		{"GET", "lists of 20 posts answered a second", bare.Request{
			Method: http.MethodGet, URL: s.stack.PostsURL() + "?page=2&limit=20", Key: team.Token, Status: http.StatusOK,
		}},
		{"POST", "posts judged and refused a second", bare.Request{
			Method: http.MethodPost, URL: s.stack.PostsURL(), Key: team.Token, Status: http.StatusBadRequest, Body: body,
		}},
	} {
		value, err := s.compareREST(ctx, o, r)
		if err != nil {
			return fmt.Errorf("%s: %w", o.id, err)
		}
		values[o.id] = value
	}
	r.add("REST", values)
	return planted.Remove(ctx)
}

// compareREST has both sides serve the same requests, in rounds of alternating order.
func (s *session) compareREST(ctx context.Context, o operation, r *report) (map[string]any, error) {
	if _, err := s.stack.StartAPIServer(ctx); err != nil {
		return nil, err
	}
	answer, err := s.answerTo(ctx, o.request)
	if err := errors.Join(err, s.stack.StopHerald()); err != nil {
		return nil, err
	}
	var rates, costs []float64
	var last [2]served
	for round := range s.rounds {
		for i := range last {
			which := (i + round) % len(last)
			side := s.plainly
			if which == 1 {
				side = s.byHerald
			}
			if last[which], err = side(ctx, o.request, answer, s.restAsks); err != nil {
				return nil, err
			}
		}
		rates = append(rates, measure.Rounded(last[1].rate/last[0].rate, 3))
		costs = append(costs, measure.Rounded(last[1].cpu/last[0].cpu, 2))
		s.sayf("  REST %s round %d: plain %.0f/s, p99 %.1f ms, %.3f ms of CPU; Herald %.0f/s, p99 %.1f ms, %.3f ms; ratio %.2f, of the cost %.2f",
			o.id, round+1, last[0].rate, last[0].latency.P99, last[0].cpu, last[1].rate, last[1].latency.P99, last[1].cpu,
			rates[round], costs[round])
	}
	r.measured("REST", o.id+": "+o.what, last[0].rate, last[1].rate, measure.Median(rates))
	return map[string]any{
		"ratio": measure.Median(rates), "ratios": rates, "cpu_ratio": measure.Median(costs), "cpu_ratios": costs,
		"floor_cpu_ms": measure.Rounded(last[0].cpu, 4), "herald_cpu_ms": measure.Rounded(last[1].cpu, 4),
		"floor_per_s": measure.Rounded(last[0].rate, 0), "herald_per_s": measure.Rounded(last[1].rate, 0),
		"floor_ms": last[0].latency, "herald_ms": last[1].latency, "in_flight": restInFlight, "answer_bytes": len(answer.Body),
	}, nil
}

// answerTo is what Herald answers.
func (s *session) answerTo(ctx context.Context, r bare.Request) (bare.Reply, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return bare.Reply{}, err
	}
	request.Header.Set("Authorization", "Bearer "+r.Key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return bare.Reply{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != r.Status {
		err = fmt.Errorf("herald answers %s, want %d: %s", response.Status, r.Status, body)
	}
	return bare.Reply{Status: response.StatusCode, Type: response.Header.Get("Content-Type"), Body: body}, err
}

// plainly has the bare server answer.
func (s *session) plainly(ctx context.Context, request bare.Request, answer bare.Reply, asks int) (served, error) {
	server, err := s.bare(ctx, bare.Plain, "", bare.Config{
		Processor: measure.ServerProcessor, Address: s.stack.PlainAddress(), Answers: map[string]bare.Reply{request.Method: answer},
	})
	if err != nil {
		return served{}, err
	}
	defer server.Kill() //nolint:errcheck // it is killed while it serves, which is the only way in which it ends
	if err := server.Go(); err != nil {
		return served{}, err
	}
	to, err := url.Parse(request.URL)
	if err != nil {
		return served{}, err
	}
	to.Host = s.stack.PlainAddress()
	request.URL = to.String()
	return s.cost(ctx, request, server.PID(), asks)
}

// byHerald has the apiserver answer.
func (s *session) byHerald(ctx context.Context, request bare.Request, _ bare.Reply, asks int) (out served, err error) {
	apiserver, err := s.stack.StartAPIServer(ctx)
	defer func() { err = errors.Join(err, s.stack.StopHerald()) }()
	if err != nil {
		return served{}, err
	}
	profiled := s.profile(ctx, "REST-"+request.Method)
	if out, err = s.cost(ctx, request, apiserver.PID(), asks); err != nil {
		return out, err
	}
	return out, profiled()
}

// cost is what a process takes to answer a request.
func (s *session) cost(ctx context.Context, request bare.Request, pid, asks int) (served, error) {
	ask, err := s.bare(ctx, bare.Ask, "", bare.Config{
		Processor: measure.ClientProcessor, InFlight: restInFlight, Warm: warmAsks, Count: asks, Requests: []bare.Request{request},
	})
	if err != nil {
		return served{}, err
	}
	before := stack.CPUOf(pid)
	result, err := ask.Finish(ctx)
	if err != nil {
		return served{}, err
	}
	used := stack.CPUOf(pid) - before
	return served{
		rate:    float64(asks) / result.End.Sub(result.Start).Seconds(),
		cpu:     used.Seconds() * 1000 / float64(asks),
		latency: *result.Latency,
	}, nil
}
