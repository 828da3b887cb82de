// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// newContainers returns a graph that publishes in two steps, on a test server, with a clock that the test advances.
func newContainers(t *testing.T, answer http.HandlerFunc) (*Containers, recorder.Clock) {
	t.Helper()
	server := recorder.Start(t, answer)
	clk := recorder.Clock{FakeClock: clocktesting.NewFakeClock(noon)}
	return &Containers{
		Graph: Graph{
			Client:  client.Client{Platform: "graph", Name: "Graph", BaseURL: server.URL, Transport: transport.New(transport.Options{})},
			Version: "v1", Clock: clk, Errors: With(
				Row{Code: 24, Kind: KindNotReady, Source: "this test"}, Row{Code: 100, Subcode: 4279004, Kind: KindLost, Retryable: true, Source: "this test"}),
		},
		CreateEdge: "make", PublishEdge: "publish", CreateTimeout: time.Second, PublishTimeout: time.Second, StatusFields: "status",
		Cache: NewContainerCache(),
	}, clk
}

const (
	// unread is the response for a container that the graph does not show.
	unread = `{"error":{"code":100,"error_subcode":33}}`
	// invalid and notYet are refusals that may also occur for a container that is already published.
	invalid = `{"error":{"code":100}}`
	notYet  = `{"error":{"code":24}}`
)

// TestDoubleCheck makes a graph refuse to publish a container that an earlier call, whose response was lost, may have
// published. The refusal may stand only if the graph's state shows that the container is not published.
func TestDoubleCheck(t *testing.T) {
	tests := map[string]struct {
		reason, refusal string
		status          http.HandlerFunc
		want            platforms.Outcome
	}{
		"published":            {"the container says so", invalid, recorder.Respond(200, `{"status":"PUBLISHED"}`), platforms.Unknown},
		"finished":             {"it is ready to be published", invalid, recorder.Respond(200, `{"status":"FINISHED"}`), platforms.Refused},
		"in progress":          {"the same container is tried again when it is done", invalid, recorder.Respond(200, `{"status":"IN_PROGRESS"}`), platforms.Refused},
		"expired":              {"it was not published within a day", invalid, recorder.Respond(200, `{"status":"EXPIRED"}`), platforms.Refused},
		"failed":               {"it failed to be published", invalid, recorder.Respond(200, `{"status":"ERROR"}`), platforms.Refused},
		"odd":                  {"a word that is none of the graph's says nothing", invalid, recorder.Respond(200, `{"status":"LATER"}`), platforms.Unknown},
		"no word":              {"nor does an answer without one", invalid, recorder.Respond(200, `{}`), platforms.Unknown},
		"trouble":              {"nor does trouble", invalid, recorder.Respond(503, ``), platforms.Unknown},
		"no answer":            {"nor does silence", invalid, recorder.HangUp, platforms.Unknown},
		"unread":               {"nor does a graph that shows no such container", invalid, recorder.Respond(400, unread), platforms.Unknown},
		"not yet, and unread":  {"the same where a refusal may pass", notYet, recorder.Respond(400, unread), platforms.Unknown},
		"missing, and unread":  {"the same where the account, or the container, is missing", unread, recorder.Respond(400, unread), platforms.Unknown},
		"not yet, and ready":   {"it may pass", notYet, recorder.Respond(200, `{"status":"FINISHED"}`), platforms.Refused},
		"not yet, and expired": {"it is not published", notYet, recorder.Respond(200, `{"status":"EXPIRED"}`), platforms.Refused},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, _ := newContainers(t, recorder.Sequence([]http.HandlerFunc{recorder.Respond(400, tc.refusal), tc.status}))
			got := c.Publish(t.Context(), platforms.Job{Account: platforms.Account{ID: "42"}, Checkpoint: "7"})
			if got.Outcome != tc.want || got.Err == nil {
				t.Errorf("%s: got %+v, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestDoubleCheckOfTheUnread makes a graph hide all of its containers, as Instagram did for days, and refuse to publish
// one. A process that created the container and received the responses to all calls for it does not need its state.
func TestDoubleCheckOfTheUnread(t *testing.T) {
	lost := recorder.HangUp
	refused := recorder.Respond(400, invalid)
	tests := map[string]struct {
		reason string
		calls  []http.HandlerFunc
		after  time.Duration
		want   platforms.Outcome
	}{
		"first":         {"no other call was made", []http.HandlerFunc{refused}, 0, platforms.Refused},
		"again":         {"every other call was refused", []http.HandlerFunc{refused, refused}, 0, platforms.Refused},
		"after a loss":  {"an earlier call may have published it", []http.HandlerFunc{lost, refused}, 0, platforms.Unknown},
		"after both":    {"also if another was refused meanwhile", []http.HandlerFunc{lost, refused, refused}, 0, platforms.Unknown},
		"another order": {"or before", []http.HandlerFunc{refused, lost, refused}, 0, platforms.Unknown},
		"long ago":      {"what was made long ago may be known to others", []http.HandlerFunc{refused}, newFor, platforms.Unknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			calls := recorder.Sequence(tc.calls)
			c, clk := newContainers(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/make"):
					recorder.Respond(200, `{"id":"7"}`)(w, r)
				case strings.HasSuffix(r.URL.Path, "/publish"):
					calls(w, r)
				default:
					recorder.Respond(400, unread)(w, r)
				}
			})
			job := platforms.Job{Account: platforms.Account{ID: "42"}}
			id, bad := c.NewTask(job, time.Second).Create(t.Context(), nil, ThePost)
			if bad != nil {
				t.Fatal(bad)
			}
			clk.Step(tc.after)
			job.Checkpoint = id
			var got platforms.Result
			for range tc.calls {
				got = c.Publish(t.Context(), job)
			}
			if got.Outcome != tc.want {
				t.Errorf("%s: got %+v, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
