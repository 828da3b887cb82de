// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platformtest

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/sandboxtest"
)

func (s *Suite) testLimits(t *testing.T) {
	limits := s.New(t, "http://herald.invalid").Capabilities()
	if len(limits.Categories) == 0 || limits.CallTimeout <= 0 || limits.ListingLag <= 0 {
		t.Errorf("the limits are not all declared: %+v", limits)
	}
	if limits.MaxCaption > 0 && (limits.CaptionLength == nil || limits.CaptionUnit == "") {
		t.Error("a caption that has a greatest length must be counted, in a unit that people know")
	}
	if _, ok := s.New(t, "http://herald.invalid").(platforms.Preparer); ok != (limits.PreparedTTL > 0) {
		t.Error("a platform that prepares says how long what is prepared lasts, and only such a one")
	}
	testHosts(t, limits.Hosts)
	for name, text := range texts {
		problem := limits.CaptionProblem != nil && limits.CaptionProblem(text) != "" || limits.MaxCaption > 0 && limits.CaptionLength(text) > limits.MaxCaption
		if refused := slices.Contains(s.Refuses, name); problem != refused {
			t.Errorf("the caption %q is refused: %t; want %t", name, problem, refused)
		}
	}
}

// hostName matches a public host name.
var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$`)

// testHosts checks the hosts that a platform declares. Firewalls are configured from them, and URLs in responses are
// called only on these hosts.
func testHosts(t *testing.T, hosts platforms.Hosts) {
	t.Helper()
	if len(hosts.Called) == 0 {
		t.Error("the hosts that are called are not declared")
	}
	for _, host := range hosts.Called {
		if !hostName.MatchString(host) {
			t.Errorf("%q is no host that can be called", host)
		}
	}
	for _, pattern := range hosts.Named {
		// A pattern with a single label would trust every name under it.
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
			if diff := cmp.Diff(want, found); diff != "" || err != nil {
				t.Errorf("what was published must be found again: %v (-want +got):\n%s", err, diff)
			}
			for which, at := range map[string]time.Time{"result": got.PostedAt, "finding": found.PostedAt} {
				if !at.IsZero() && (at.Before(before.Add(-time.Second)) || at.After(now().Add(time.Second))) {
					t.Errorf("posted at %v, by the word of the %s, but it is %v", at, which, now())
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
		"closed after":   {"the answer was lost", sandboxtest.Fault{Kind: "drop_after"}, platforms.Unknown, "", 1},
		"error after":    {"an error does not prove that nothing happened", sandboxtest.Fault{Kind: "error_after", Status: 500}, platforms.Unknown, "", 1},
		"bad gateway":    {"nor does one of something in between", sandboxtest.Fault{Kind: "error_after", Status: 502}, platforms.Unknown, "", 1},
		"timeout status": {"nor does a timeout of something in between", sandboxtest.Fault{Kind: "error_after", Status: 408}, platforms.Unknown, "", 1},
		"unavailable":    {"an outage may come after the act", sandboxtest.Fault{Kind: "status", Status: 503}, platforms.Unknown, "", 0},
		"redirect":       {"following it would send the post twice", sandboxtest.Fault{Kind: "status", Status: 307}, platforms.Unknown, "", 0},
		"no content":     {"a success without an id may be one", sandboxtest.Fault{Kind: "status", Status: 204}, platforms.Unknown, "", 0},
		"refused":        {"what the platform finds invalid is not sent again unchanged", sandboxtest.Fault{Kind: "status", Status: 400}, platforms.Refused, platforms.ClassPermanent, 0},
		"rate limited":   {"a limit refuses, and passes", sandboxtest.Fault{Kind: "rate_limit", RetryAfterS: 60}, platforms.Refused, platforms.ClassRateLimited, 0},
		"token expired":  {"an ended token refuses", sandboxtest.Fault{Kind: "token_expired"}, platforms.Refused, s.endedClass(), 0},
		"token revoked":  {"so does one that was taken back", sandboxtest.Fault{Kind: "token_revoked"}, platforms.Refused, s.endedClass(), 0},
	}
	for _, category := range s.simplest(s.New(t, "http://herald.invalid")) {
		for name, tc := range tests {
			t.Run(string(category)+" "+name, func(t *testing.T) {
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
					t.Errorf("the platform said when to try again, but RetryAt is %v", got.Err.RetryAt)
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
	// A new client has no open connection on which it could send the call.
	away, _ := s.New(t, f.control.URL).(platforms.Publisher)
	got := away.Publish(t.Context(), job)
	if got.Outcome != platforms.NotSent || got.Err == nil || got.Err.Class != platforms.ClassTransient {
		t.Errorf("got %+v, want that nothing was sent", got)
	}
	f.checkNoSecrets(t, got.Err)
}

// checkLookup looks up a job and compares the result with the sandbox: a post that exists must be found, and one that
// does not must be proven absent.
func (f *fixture) checkLookup(t *testing.T, p platforms.Publisher, job platforms.Job, posts int) {
	t.Helper()
	f.fetched()
	if n := len(f.published(t)); n != posts {
		t.Errorf("the sandbox holds %d posts, want %d", n, posts)
	}
	found, err := p.Lookup(t.Context(), job)
	if err != nil || found.Matches != posts {
		t.Errorf("found %+v, %v; the sandbox holds %d", found, err, posts)
	}
	unprovable := slices.Contains(f.suite.Unprovable, job.Content.Category)
	if posts == 0 && !found.Proof && found.Refused == nil && !p.Capabilities().ProvesAbsence(job.Content.Category) && !unprovable {
		t.Error("that nothing was published must be provable: by the listing, or by what was prepared")
	}
}

// testSlowPublish delays the platform past the call's timeout.
func (s *Suite) testSlowPublish(t *testing.T, category v1alpha1.Category) {
	t.Helper()
	// The sandbox's delay uses a stopped clock.
	f := s.start(t, clocktesting.NewFakeClock(now()))
	job := f.prepare(t, f.post(t, category, "hello"))
	f.fault(t, sandboxtest.Fault{Operation: "publish", Kind: "delay", DelayMS: 60000})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	p, _ := f.platform.(platforms.Publisher)
	got := p.Publish(ctx, job)
	if got.Outcome != platforms.Unknown || got.Err == nil {
		t.Errorf("got %+v; a call that was cut off may yet publish", got)
	}
	f.checkNoSecrets(t, got.Err)
	if n := f.arrived(t, "publish"); n != 1 {
		t.Errorf("%d calls arrived for one publication", n)
	}
}
