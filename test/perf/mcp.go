// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/herald-social/herald/test/perf/internal/bare"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// goalMCP is the goal for the CPU time of a tool call, as a multiple of a REST request's CPU time.
const goalMCP = 3.0

// mcpPosts is the number of posts listed; a page has pageSize of them.
const mcpPosts = 1000

// calls are the apiserver's CPU times per request of each kind, in milliseconds: the medians of the rounds.
type calls struct {
	REST float64 `json:"rest_ms"`
	MCP  float64 `json:"mcp_ms"`
	// Ping is the cost of a no-op call: the SDK, reading the body, and HTTP overhead.
	Ping float64 `json:"ping_ms"`
}

// runMCP compares a page of posts from a tool with the same page from REST.
func runMCP(ctx context.Context, s *session, r *report, id string) error {
	b := &b4{session: s}
	err := s.prepare(ctx, func() (err error) {
		b.sample, err = b.deliveredPost(ctx, s.texts())
		return err
	})
	if err != nil {
		return err
	}
	posts := max(s.scaled(mcpPosts), pageSize)
	stored, err := b.stack.StorePosts(ctx, posts, newPostMix(b.sample, b.texts(), s.connected[:1], posts).post)
	if err != nil {
		return err
	}
	c, err := b.callTools(ctx)
	if err := errors.Join(err, stored.Remove(ctx)); err != nil {
		return err
	}
	ratio := measure.Rounded(c.MCP/c.REST, 2)
	share := measure.Rounded((c.MCP-c.REST)/c.MCP, 2)
	r.add(id, map[string]any{
		"ratio": ratio, "goal": goalMCP, "met": ratio <= goalMCP, "rest_ms": c.REST, "mcp_ms": c.MCP, "ping_ms": c.Ping, "beyond_rest_share": share,
	})
	r.rows = append(r.rows, row{
		id: id, what: fmt.Sprintf("CPU time of the tool list_posts compared with GET /posts, a page of %d; %.0f %% of it is the SDK's and the protocol's", pageSize, share*100),
		floor: fmt.Sprintf("%.3f ms", c.REST), herald: fmt.Sprintf("%.3f ms", c.MCP), ratio: fmt.Sprintf("%.2f", ratio),
		goal: fmt.Sprintf("≤ %.0f", goalMCP), met: ratio <= goalMCP,
	})
	return nil
}

// callTools sends each kind of request in turn, in several rounds.
func (b *b4) callTools(ctx context.Context) (c calls, err error) {
	apiserver, err := b.stack.StartAPIServer(ctx)
	defer func() { err = errors.Join(err, b.stack.StopHerald()) }()
	if err != nil {
		return c, err
	}
	team := b.connected[0]
	agents := strings.TrimSuffix(b.stack.APIURL(""), "/api/v1") + "/mcp"
	call := func(method, params string) bare.Request {
		return bare.Request{
			Method: http.MethodPost, URL: agents, Key: team.Token, Status: http.StatusOK,
			Body: []byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"` + params + `}`),
		}
	}
	kinds := []struct {
		into    *float64
		request bare.Request
	}{
		{&c.REST, bare.Request{Method: http.MethodGet, URL: b.stack.APIURL("/posts"), Key: team.Token, Status: http.StatusOK}},
		{&c.MCP, call("tools/call", `,"params":{"name":"list_posts","arguments":{}}`)},
		{&c.Ping, call("ping", "")},
	}
	took := make([][]float64, len(kinds))
	for range b.rounds {
		for i := range kinds {
			before := stack.CPU(apiserver.PID())
			if _, err := b.requestAll(ctx, []bare.Request{kinds[i].request}); err != nil {
				return c, err
			}
			used := stack.CPU(apiserver.PID()) - before
			took[i] = append(took[i], used.Seconds()*1000/float64(b.b4Asks+warmAsks))
		}
	}
	for i := range kinds {
		*kinds[i].into = measure.Rounded(measure.Median(took[i]), 3)
	}
	b.logf("  %s: a page takes %.3f ms of CPU time by REST, %.3f ms by tool; a ping %.3f ms", "B-MCP", c.REST, c.MCP, c.Ping)
	return c, nil
}
