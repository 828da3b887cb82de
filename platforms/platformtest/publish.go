// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platformtest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/sandboxtest"
)

func (s *Suite) testLimits(t *testing.T) {
	limits := s.New(t, "http://herald.invalid").Capabilities()
	if len(limits.Categories) == 0 || limits.CallTimeout <= 0 || limits.ListingLag <= 0 {
		t.Errorf("some limits are not declared: %+v", limits)
	}
	if limits.MaxCaption > 0 && (limits.CaptionLength == nil || limits.CaptionUnit == "") {
		t.Error("a maximum caption length needs a counting function and a unit for users")
	}
	if _, ok := s.New(t, "http://herald.invalid").(platforms.Preparer); ok != (limits.PreparedTTL > 0) {
		t.Error("exactly the platforms that prepare posts declare how long a preparation is valid")
	}
	testHosts(t, limits.Hosts)
	for name, text := range texts {
		problem := limits.CaptionProblem != nil && limits.CaptionProblem(text) != "" || limits.MaxCaption > 0 && limits.CaptionLength(text) > limits.MaxCaption
		if refused := slices.Contains(s.Refuses, name); problem != refused {
			t.Errorf("the caption %q is rejected: %t; want %t", name, problem, refused)
		}
	}
}

// hostName matches a public host name.
var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$`)

// testHosts checks the hosts that a platform declares. Firewalls are configured from these, and URLs in responses are
// called only on these hosts.
func testHosts(t *testing.T, hosts platforms.Hosts) {
	t.Helper()
	if len(hosts.Called) == 0 && !hosts.Chosen {
		t.Error("the called hosts are not declared")
	}
	for _, host := range hosts.Called {
		if !hostName.MatchString(host) {
			t.Errorf("%q is not a valid host", host)
		}
	}
	for _, pattern := range hosts.Named {
		// A pattern with only one label would allow every name under a top-level domain.
		if host := strings.TrimPrefix(pattern, "*."); !hostName.MatchString(host) {
			t.Errorf("%q is neither a host nor \"*.\" and the end of names", pattern)
		}
	}
}

// texts are captions that platforms are known to alter.
var texts = map[string]string{
	"plain": "We launched.", "punctuation": `Fish & <chips> "now" isn't 100% cheap &amp; &lt;`, "lines": "first\n\n  second\tthird ",
	"emoji": "a family 👨‍👩‍👧 and a flag 🇮🇸", "combining": "cafe\u0301 u\u0308ber",
	"address": "read https://example.com/launch?a=1&b=2 (or example.org/)", "mixed": "日本語のテキスト https://example.com。続き",
}

func (s *Suite) testPublish(t *testing.T) {
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			if slices.Contains(s.Refuses, name) {
				t.Skipf("%s refuses this text", s.Name)
			}
			f, p := s.publisher(t)
			before := now()
			job := f.prepared(t, text)
			got := p.Publish(t.Context(), job)
			if got.Outcome != platforms.Posted || got.ExternalID == "" || got.ExternalURL == "" || got.Err != nil {
				t.Fatalf("got %+v, want Posted", got)
			}
			posts := f.published(t)
			if len(posts) != 1 || posts[0].ID != got.ExternalID || posts[0].URL != got.ExternalURL || f.arrived(t, "publish") != 1 {
				t.Fatalf("after %d calls the sandbox holds %+v, but the result is %+v", f.arrived(t, "publish"), posts, got)
			}
			found, err := p.Lookup(t.Context(), job)
			want := platforms.LookupResult{Matches: 1, ExternalID: got.ExternalID, ExternalURL: got.ExternalURL, PostedAt: found.PostedAt, Certain: found.Certain}
			if diff := gocmp.Diff(want, found); diff != "" || err != nil {
				t.Errorf("the published post must be found: %v (-want +got):\n%s", err, diff)
			}
			for which, at := range map[string]time.Time{"result": got.PostedAt, "finding": found.PostedAt} {
				if !at.IsZero() && (at.Before(before.Add(-time.Second)) || at.After(now().Add(time.Second))) {
					t.Errorf("posted at %v according to the %s, but it is %v", at, which, now())
				}
			}
		})
	}
}

// testPublishFaults injects faults into the publishing call.
func (s *Suite) testPublishFaults(t *testing.T) {
	tests := map[string]struct {
		reason  string
		fault   sandboxtest.Fault
		outcome platforms.Outcome
		// class is the error's expected class; empty for any.
		class platforms.Class
		posts int
	}{
		"closed before":  {"the call arrived and was lost", sandboxtest.Fault{Kind: "drop_before"}, platforms.Unknown, "", 0},
		"closed after":   {"the response was lost", sandboxtest.Fault{Kind: "drop_after"}, platforms.Unknown, "", 1},
		"error after":    {"an error does not prove that nothing happened", sandboxtest.Fault{Kind: "error_after", Status: 500}, platforms.Unknown, "", 1},
		"bad gateway":    {"a proxy's error does not prove that nothing happened", sandboxtest.Fault{Kind: "error_after", Status: 502}, platforms.Unknown, "", 1},
		"timeout status": {"a proxy's timeout does not show the outcome either", sandboxtest.Fault{Kind: "error_after", Status: 408}, platforms.Unknown, "", 1},
		"unavailable":    {"an outage may begin after the publication", sandboxtest.Fault{Kind: "status", Status: 503}, platforms.Unknown, "", 0},
		"redirect":       {"following it would send the post twice", sandboxtest.Fault{Kind: "status", Status: 307}, platforms.Unknown, "", 0},
		"no content":     {"a success without an id may be a publication", sandboxtest.Fault{Kind: "status", Status: 204}, platforms.Unknown, "", 0},
		"refused":        {"invalid content is not sent again unchanged", sandboxtest.Fault{Kind: "status", Status: 400}, platforms.Refused, platforms.ClassPermanent, 0},
		"rate limited":   {"a rate limit rejects the call, and is temporary", sandboxtest.Fault{Kind: "rate_limit", RetryAfterS: 60}, platforms.Refused, platforms.ClassRateLimited, 0},
		"token expired":  {"an expired token is rejected", sandboxtest.Fault{Kind: "token_expired"}, platforms.Refused, s.endedClass(), 0},
		"token revoked":  {"a revoked token is rejected", sandboxtest.Fault{Kind: "token_revoked"}, platforms.Refused, s.endedClass(), 0},
	}
	for _, category := range s.simplest(s.New(t, "http://herald.invalid")) {
		for name, tc := range tests {
			t.Run(string(category)+" "+name, func(t *testing.T) {
				s.skipUnnoticed(t, tc.fault)
				f, p := s.publisher(t)
				job := f.prepare(t, f.post(t, category, "hello"))
				// The HTTP client might retry a request on a reused connection.
				if _, err := p.Identify(t.Context(), f.token()); err != nil {
					t.Fatal(err)
				}
				tc.fault.Operation = "publish"
				f.fault(t, tc.fault)
				if tc.class == s.endedClass() && slices.Contains(s.Bearerless, category) {
					tc.class = platforms.ClassTransient
				}
				if tc.class == platforms.ClassPermanent && slices.Contains(s.Remakes, category) {
					tc.class = platforms.ClassTransient
				}
				got := p.Publish(t.Context(), job)
				if got.Outcome != tc.outcome || got.Err == nil || tc.class != "" && got.Err.Class != tc.class {
					t.Fatalf("%s: got %+v (%v)", tc.reason, got, got.Err)
				}
				if tc.class == platforms.ClassRateLimited && !s.SilentLimits && !got.Err.RetryAt.After(now()) {
					t.Errorf("the platform sent a retry time, but RetryAt is %v", got.Err.RetryAt)
				}
				f.checkNoSecrets(t, got.Err)
				if n := f.arrived(t, "publish"); n != 1 {
					t.Errorf("%d calls arrived for one publication", n)
				}
				job.OperationID = got.OperationID
				f.checkLookup(t, p, job, tc.posts)
			})
		}
		t.Run(string(category)+" too slow", func(t *testing.T) { s.testSlowPublish(t, category) })
		t.Run(string(category)+" unreachable", func(t *testing.T) { s.testUnreachable(t, category) })
	}
}

// testUnreachable stops the platform before the visible call.
func (s *Suite) testUnreachable(t *testing.T, category v1alpha1.Category) {
	t.Helper()
	f, _ := s.publisher(t)
	job := f.prepare(t, f.post(t, category, "hello"))
	f.stop()
	// A new client does not have an open connection for the call.
	away, _ := s.New(t, f.control.URL).(platforms.Publisher)
	got := away.Publish(t.Context(), job)
	if got.Outcome != platforms.NotSent || got.Err == nil || got.Err.Class != platforms.ClassTransient {
		t.Errorf("got %+v, want NotSent", got)
	}
	f.checkNoSecrets(t, got.Err)
}

// checkLookup looks up a job and compares the result with the sandbox: a post that exists must be found, and one that
// does not must be proven absent.
func (f *fixture) checkLookup(t *testing.T, p platforms.Publisher, job platforms.Job, posts int) {
	t.Helper()
	f.fetched()
	if n := len(f.published(t)); n != posts {
		t.Errorf("the sandbox has %d posts, want %d", n, posts)
	}
	found, err := p.Lookup(t.Context(), job)
	if err != nil || found.Matches != posts {
		t.Errorf("found %+v, %v; the sandbox has %d", found, err, posts)
	}
	unprovable := slices.Contains(f.suite.Unprovable, job.Content.Category)
	if posts == 0 && !found.Proof && found.Refused == nil && !p.Capabilities().ProvesAbsence(job.Content.Category) && !unprovable {
		t.Error("absence must be provable, by the listing or by the preparation")
	}
}

// testSlowPublish interrupts a call that has arrived and is not answered.
func (s *Suite) testSlowPublish(t *testing.T, category v1alpha1.Category) {
	t.Helper()
	// The sandbox's delay uses a stopped clock.
	f := s.start(t, clocktesting.NewFakeClock(now()))
	job := f.prepare(t, f.post(t, category, "hello"))
	f.fault(t, sandboxtest.Fault{Operation: "publish", Kind: "delay", DelayMS: 60000})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer cancel()
		f.awaitCall(ctx, "publish")
	}()
	p, _ := f.platform.(platforms.Publisher)
	got := p.Publish(ctx, job)
	if got.Outcome != platforms.Unknown || got.Err == nil {
		t.Errorf("got %+v; an interrupted call may still publish", got)
	}
	f.checkNoSecrets(t, got.Err)
	if n := f.arrived(t, "publish"); n != 1 {
		t.Errorf("%d calls arrived for one publication", n)
	}
}

// awaitCall waits until a call of an operation has arrived, or until ctx is done.
func (f *fixture) awaitCall(ctx context.Context, operation string) {
	_ = wait.PollUntilContextCancel(ctx, time.Millisecond, true, func(ctx context.Context) (bool, error) {
		calls, err := f.control.Calls(ctx, f.name)
		return err == nil && calls[operation] > 0, nil
	})
}

// Answer is a platform's simulated response to a call.
type Answer struct {
	Status int
	// Body is sent as JSON, or as text if it is a string.
	Body any
}

// GraphRefusals returns errors of Meta's graphs, by code and subcode: app, account and Page rate limits, blocks,
// quotas, tokens, permissions, duplicates, missing containers, and outages ("Handling Errors" and "Error Codes").
func GraphRefusals() map[string]Answer {
	out := map[string]Answer{}
	for name := range strings.FieldsSeq("4/0 17/0 32/0 341/0 613/0 80002/0 4/2207051 368/0 368/1390008 9/2207042 190/463 10/0 200/0 25/2207050 " +
		"506/1455006 24/2207006 24/4279009 100/0 100/33 100/4279004 9007/2207027 -2/2207020 1/0 2/0") {
		code, subcode, _ := strings.Cut(name, "/")
		out["code "+name] = Answer{Status: 400, Body: map[string]any{"error": map[string]any{
			"message": "m", "type": "OAuthException", "code": json.Number(code), "error_subcode": json.Number(subcode),
			"is_transient": slices.Contains([]string{"-2", "1", "2"}, code),
		}}}
	}
	return out
}

// refusals returns responses that may arrive although the post was published: the platform's refusals, and responses
// that are not in the platform's format, such as those of a proxy. The suite's own refusals take a while, so they are
// tested with only one kind of post.
func (s *Suite) refusals(withOwn bool) map[string]sandboxtest.Fault {
	const page = "<html><body><h1>%d</h1></body></html>"
	out := map[string]sandboxtest.Fault{
		"no words, 400":        {Status: 400, Body: ""},
		"no words, 429":        {Status: 429, Body: ""},
		"an empty object, 403": {Status: 403, Body: map[string]any{}},
		"a list, 400":          {Status: 400, Body: []any{}},
		"a page, 403":          {Status: 403, Body: fmt.Sprintf(page, 403)},
		"a page, 404":          {Status: 404, Body: fmt.Sprintf(page, 404)},
		"a page, 502":          {Status: 502, Body: fmt.Sprintf(page, 502)},
		"a page, 200":          {Status: 200, Body: fmt.Sprintf(page, 200)},
	}
	for _, refusal := range []string{"rate_limit", "spam", "permission", "invalid"} {
		out[refusal] = sandboxtest.Fault{Refusal: refusal}
	}
	for _, status := range []int{400, 401, 403, 404, 409, 410, 413, 416, 429, 500, 503} {
		out[fmt.Sprintf("in the platform's words, %d", status)] = sandboxtest.Fault{Status: status}
	}
	if !withOwn {
		return out
	}
	for name, answer := range s.Refusals {
		out[name] = sandboxtest.Fault{Status: answer.Status, Body: answer.Body}
	}
	return out
}

// testPublishedAndRefused makes the platform publish a post and yet respond with a refusal. The response must not count
// as a success, and a lookup from the time of the call must find the post.
func (s *Suite) testPublishedAndRefused(t *testing.T) {
	for i, category := range s.simplest(s.New(t, "http://herald.invalid")) {
		t.Run(string(category), func(t *testing.T) {
			f, p := s.publisher(t)
			all := s.refusals(i == 0)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				t.Run(name, func(t *testing.T) {
					f.publishedAndRefused(t, p, f.post(t, category, "published, and refused: "+name), all[name])
				})
			}
		})
	}
}

// FuzzPublishedAndRefused is like testPublishedAndRefused, with arbitrary unsuccessful responses.
func (s *Suite) FuzzPublishedAndRefused(f *testing.F) {
	f.Add(403, "<html>")
	f.Add(400, `{"error":{"code":4,"error_subcode":2207051}}`)
	f.Add(429, `{"title":"Too Many Requests","errors":[null,{"code":"88"}]}`)
	f.Add(308, `{"error":{"code":"ok"}}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 300 || status > 599 {
			t.Skip("a success, or no status of HTTP")
		}
		fix, p := s.publisher(t)
		fix.publishedAndRefused(t, p, fix.job(t, "published, and refused"), sandboxtest.Fault{Status: status, Body: body})
	})
}

func (f *fixture) publishedAndRefused(t *testing.T, p platforms.Publisher, job platforms.Job, fault sandboxtest.Fault) {
	t.Helper()
	job = f.prepare(t, job)
	before := f.published(t)
	fault.Operation, fault.Kind = "publish", "publishes_and_refuses"
	f.fault(t, fault)
	got := p.Publish(t.Context(), job)
	f.clearFaults(t)
	f.fetched()
	posts := f.published(t)
	if len(posts) != len(before)+1 {
		t.Fatalf("the sandbox holds %d posts, and held %d before the call", len(posts), len(before))
	}
	id := posts[len(posts)-1].ID
	switch {
	case got.Outcome == platforms.NotSent:
		t.Errorf("got %+v (%v) for a call that was answered", got, got.Err)
	case got.Outcome == platforms.Posted && got.ExternalID != id:
		// The publisher may have verified the outcome itself.
		t.Errorf("a refusal counts as the publication of %q", cmp.Or(got.ExternalID, "no post"))
	case got.Outcome != platforms.Posted && got.Err == nil:
		t.Errorf("got %+v, without an error", got)
	}
	f.checkNoSecrets(t, asError(got.Err))

	job.OperationID = got.OperationID
	found, err := p.Lookup(t.Context(), job)
	if err != nil || found.Matches != 1 || found.ExternalID != id {
		t.Errorf("found %+v, %v; want %s", found, err, id)
	}
}
