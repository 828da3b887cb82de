// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
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
	// unread is the response for a container that the graph does not return.
	unread = `{"error":{"code":100,"error_subcode":33}}`
	// invalid and notYet are refusals that may also occur for a container that is already published.
	invalid = `{"error":{"code":100}}`
	notYet  = `{"error":{"code":24}}`
)

// TestDoubleCheck makes a graph refuse to publish a container that an earlier call, whose response was lost, may have
// published. The refusal may count only if the container's state shows that it is not published.
func TestDoubleCheck(t *testing.T) {
	tests := map[string]struct {
		reason, refusal string
		status          http.HandlerFunc
		want            platforms.Outcome
	}{
		"published":            {"the container reports the publication", invalid, recorder.Respond(200, `{"status":"PUBLISHED"}`), platforms.Unknown},
		"finished":             {"the container is ready to be published", invalid, recorder.Respond(200, `{"status":"FINISHED"}`), platforms.Refused},
		"in progress":          {"the same container is used again when it is ready", invalid, recorder.Respond(200, `{"status":"IN_PROGRESS"}`), platforms.Refused},
		"expired":              {"the container was not published within a day", invalid, recorder.Respond(200, `{"status":"EXPIRED"}`), platforms.Refused},
		"failed":               {"the container failed to be published", invalid, recorder.Respond(200, `{"status":"ERROR"}`), platforms.Refused},
		"odd":                  {"an unknown state is not evidence", invalid, recorder.Respond(200, `{"status":"LATER"}`), platforms.Unknown},
		"no status":            {"a response without a state is not reliable", invalid, recorder.Respond(200, `{}`), platforms.Unknown},
		"trouble":              {"an outage is not reliable", invalid, recorder.Respond(503, ``), platforms.Unknown},
		"no answer":            {"a missing response is not reliable", invalid, recorder.HangUp, platforms.Unknown},
		"unread":               {"a missing container is not reliable", invalid, recorder.Respond(400, unread), platforms.Unknown},
		"not yet, and unread":  {"the same where a refusal may pass", notYet, recorder.Respond(400, unread), platforms.Unknown},
		"missing, and unread":  {"the same where the account, or the container, is missing", unread, recorder.Respond(400, unread), platforms.Unknown},
		"not yet, and ready":   {"the error may pass", notYet, recorder.Respond(200, `{"status":"FINISHED"}`), platforms.Refused},
		"not yet, and expired": {"the container is not published", notYet, recorder.Respond(200, `{"status":"EXPIRED"}`), platforms.Refused},
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

// TestDoubleCheckOfTheUnread makes a graph hide all of its containers, as Instagram once did for days, and refuse to
// publish one. A process that created the container and received a response to every call for it does not need its
// state.
func TestDoubleCheckOfTheUnread(t *testing.T) {
	lost := recorder.HangUp
	refused := recorder.Respond(400, invalid)
	tests := map[string]struct {
		reason string
		calls  []http.HandlerFunc
		after  time.Duration
		want   platforms.Outcome
	}{
		"first":         {"the lookup made no other call", []http.HandlerFunc{refused}, 0, platforms.Refused},
		"again":         {"all other calls were rejected", []http.HandlerFunc{refused, refused}, 0, platforms.Refused},
		"after a loss":  {"an earlier call may have published the container", []http.HandlerFunc{lost, refused}, 0, platforms.Unknown},
		"after both":    {"another call was refused after it", []http.HandlerFunc{lost, refused, refused}, 0, platforms.Unknown},
		"another order": {"another call was refused before it", []http.HandlerFunc{refused, lost, refused}, 0, platforms.Unknown},
		"long ago":      {"other posts may use an old container", []http.HandlerFunc{refused}, newFor, platforms.Unknown},
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

// TestPublishedContainer looks up the post of a container in state PUBLISHED. The outcome is certain; only the post's
// id is missing.
func TestPublishedContainer(t *testing.T) {
	const gone = "gone"
	listed := func(ids ...string) string {
		var posts []string
		for _, id := range ids {
			name, age, _ := strings.Cut(id, " ")
			back, err := time.ParseDuration(age + "m")
			if err != nil {
				t.Fatal(err)
			}
			posts = append(posts, fmt.Sprintf(`{"id":%q,"timestamp":%q}`, name, noon.Add(-back).Format(time.RFC3339)))
		}
		return strings.Join(posts, ",")
	}
	posted := func(id string, minutes int) platforms.LookupResult {
		return platforms.LookupResult{Matches: 1, ExternalID: id, PostedAt: noon.Add(-time.Duration(minutes) * time.Minute)}
	}
	withoutID := platforms.LookupResult{Matches: 1, Certain: true}
	tests := map[string]struct {
		reason string
		// posts are the listed posts, each as its age in minutes at noon; gone is a listing that cannot be read. The
		// job's SearchFrom is five minutes before noon, and its container was created an hour before noon.
		posts    string
		category v1alpha1.Category
		// first and later are the results of the first lookup and of the lookup after the wait.
		first, later platforms.LookupResult
	}{
		"listed":                  {"the id is in the list", listed("1 2"), v1alpha1.CategoryText, posted("1", 2), posted("1", 2)},
		"not listed":              {"a listing lags, but not for ever", "", v1alpha1.CategoryText, platforms.LookupResult{}, withoutID},
		"as old as the container": {"the post may have the container's time, if there is no newer post", listed("1 60"), v1alpha1.CategoryText, platforms.LookupResult{}, posted("1", 60)},
		"both":                    {"the newer post is the attempt's", listed("1 60", "2 1"), v1alpha1.CategoryText, posted("2", 1), posted("2", 1)},
		"older":                   {"a post older than the container is another one", listed("1 61"), v1alpha1.CategoryText, platforms.LookupResult{}, withoutID},
		"two":                     {"a wrong id is worse than a missing one", listed("1 2", "2 3"), v1alpha1.CategoryText, platforms.LookupResult{}, withoutID},
		"no list":                 {"a failed list does not change the outcome", gone, v1alpha1.CategoryText, platforms.LookupResult{}, withoutID},
		"tree, not listed":        {"the next card replies to the id", "", v1alpha1.CategoryTree, platforms.LookupResult{}, platforms.LookupResult{}},
		"tree, two": {
			"a user can choose", listed("1 2", "2 3"), v1alpha1.CategoryTree,
			platforms.LookupResult{Matches: 2, ExternalID: "2", PostedAt: noon.Add(-3 * time.Minute)},
			platforms.LookupResult{Matches: 2, ExternalID: "2", PostedAt: noon.Add(-3 * time.Minute)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, clk := newContainers(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/make"):
					recorder.Respond(200, `{"id":"7"}`)(w, r)
				case !strings.HasSuffix(r.URL.Path, "/posts"):
					recorder.Respond(200, `{"status":"PUBLISHED"}`)(w, r)
				case tc.posts == gone:
					recorder.Respond(503, ``)(w, r)
				default:
					recorder.Respond(200, `{"data":[`+tc.posts+`]}`)(w, r)
				}
			})
			clk.SetTime(noon.Add(-time.Hour))
			job := platforms.Job{Account: platforms.Account{ID: "42"}, Content: platforms.Content{Category: tc.category}}
			id, bad := c.NewTask(job, time.Second).Create(t.Context(), nil, ThePost)
			if bad != nil {
				t.Fatal(bad)
			}
			clk.SetTime(noon)
			job.Checkpoint, job.SearchFrom = id, noon.Add(-5*time.Minute)
			for i, want := range []platforms.LookupResult{tc.first, tc.later} {
				got, err := c.Lookup(t.Context(), job, Listing{Edge: "posts", Same: func(*Post) bool { return true }})
				if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want.Matches > 0) {
					t.Errorf("%s: lookup %d: %v (-want +got):\n%s", tc.reason, i+1, err, diff)
				}
				if lookupErr, ok := errors.AsType[*platforms.Error](err); ok && lookupErr.Class != platforms.ClassUnknown {
					t.Errorf("lookup %d is %s: a published post must not count as refused", i+1, lookupErr.Class)
				}
				if tc.posts == gone {
					clk.Step(unreadWait)
				} else {
					clk.Step(idWait)
				}
			}
		})
	}
}

// TestRefusalsOfThePublished makes a graph publish a container and yet refuse the call. For every error code, the
// lookup that follows must find the post.
func TestRefusalsOfThePublished(t *testing.T) {
	for i := range shared {
		row := &shared[i]
		t.Run(row.Name(), func(t *testing.T) {
			c, _ := newContainers(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodPost:
					recorder.Respond(400, fmt.Sprintf(`{"error":{"code":%d,"error_subcode":%d,"message":%q}}`, row.Code, row.Subcode, row.Word))(w, r)
				case strings.HasSuffix(r.URL.Path, "/posts"):
					recorder.Respond(200, fmt.Sprintf(`{"data":[{"id":"1","timestamp":%q}]}`, noon.Format(time.RFC3339)))(w, r)
				default:
					recorder.Respond(200, `{"status":"PUBLISHED"}`)(w, r)
				}
			})
			job := platforms.Job{Account: platforms.Account{ID: "42"}, Checkpoint: "7", SearchFrom: noon}
			got := c.Publish(t.Context(), job)
			if failure := got.Err; got.Outcome == platforms.Posted || got.Outcome == platforms.Refused && failure.Class == platforms.ClassPermanent {
				t.Errorf("the call is %s: %v", got.Outcome, failure)
			}
			found, err := c.Lookup(t.Context(), job, Listing{Edge: "posts", Same: func(*Post) bool { return true }})
			if err != nil || found.ExternalID != "1" {
				t.Errorf("found %+v, %v", found, err)
			}
		})
	}
}
