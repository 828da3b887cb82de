// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package platformtest is the contract that every platform keeps, as tests
// against the sandbox: one call is one post at most, what is said of a call is
// true, and what was published can be found again. A new platform runs it from
// its own tests.
package platformtest

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/sandboxtest"
)

// now is the time of the sandbox, which runs in this process.
func now() time.Time { return clock.RealClock{}.Now() }

// Suite is a platform under test.
type Suite struct {
	// Name is the platform's name in the sandbox.
	Name string
	// New makes the platform, to talk to a sandbox at this address.
	New func(t *testing.T, sandboxURL string) platforms.Publisher

	accounts atomic.Int64
}

// fixture is one test's sandbox, platform and account.
type fixture struct {
	name     string
	platform platforms.Publisher
	control  sandboxtest.Client
	account  sandboxtest.Account
}

func (s *Suite) start(t *testing.T) *fixture {
	t.Helper()
	server, err := sandbox.New(sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(server)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		site.Close()
	})
	f := &fixture{name: s.Name, platform: s.New(t, site.URL), control: sandboxtest.Client{URL: site.URL}}
	f.account, err = f.control.Account(t.Context(), s.Name, fmt.Sprint(100+s.accounts.Add(1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) token() platforms.Token {
	return platforms.Token{Access: f.account.AccessToken, Refresh: f.account.RefreshToken, ExpiresAt: f.account.ExpiresAt}
}

func (f *fixture) job(text string) platforms.Job {
	return platforms.Job{
		Account:  platforms.Account{ID: f.account.ID, Username: f.account.Username, Token: f.token()},
		Content:  platforms.Content{Category: v1alpha1.CategoryText, Text: text},
		LookFrom: now().Add(-2 * time.Second),
	}
}

func (f *fixture) fault(t *testing.T, fault sandboxtest.Fault) {
	t.Helper()
	fault.Platform, fault.Account = f.name, f.account.ID
	if err := f.control.Fault(t.Context(), fault); err != nil {
		t.Fatal(err)
	}
}

// published lists what the sandbox really holds.
func (f *fixture) published(t *testing.T) []sandboxtest.Post {
	t.Helper()
	posts, err := f.control.Posts(t.Context(), f.name, f.account.ID)
	if err != nil {
		t.Fatal(err)
	}
	return posts
}

// arrived counts the publishing calls.
func (f *fixture) arrived(t *testing.T) int {
	t.Helper()
	calls, err := f.control.Calls(t.Context(), f.name)
	if err != nil {
		t.Fatal(err)
	}
	return calls["publish"]
}

// Run runs the contract.
func (s *Suite) Run(t *testing.T) {
	t.Run("Publish", s.testPublish)
	t.Run("Verdicts", s.testVerdicts)
	t.Run("Lookup", s.testLookup)
	t.Run("Accounts", s.testAccounts)
	t.Run("Limits", s.testLimits)
}

// texts are captions that platforms are known to change.
var texts = map[string]string{
	"plain":       "We launched.",
	"punctuation": `Fish & <chips> "now" isn't 100% cheap &amp; &lt;`,
	"lines":       "first\n\n  second\tthird ",
	"emoji":       "a family 👨‍👩‍👧 and a flag 🇮🇸",
	"combining":   "cafe\u0301 u\u0308ber",
	"address":     "read https://example.com/launch?a=1&b=2 (or example.org/)",
	"mixed":       "日本語のテキスト https://example.com。続き",
}

func (s *Suite) testPublish(t *testing.T) {
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			f := s.start(t)
			before := now()
			got := f.platform.Publish(t.Context(), f.job(text))
			if got.Verdict != platforms.Posted || got.ExternalID == "" || got.ExternalURL == "" || got.Err != nil {
				t.Fatalf("got %+v, want Posted", got)
			}
			posts := f.published(t)
			if len(posts) != 1 || posts[0].ID != got.ExternalID || posts[0].URL != got.ExternalURL || f.arrived(t) != 1 {
				t.Fatalf("after %d calls the sandbox holds %+v, but the result is %+v", f.arrived(t), posts, got)
			}
			if !got.PostedAt.IsZero() && (got.PostedAt.Before(before.Add(-time.Second)) || got.PostedAt.After(now().Add(time.Second))) {
				t.Errorf("posted at %v, by its own word, but it is %v", got.PostedAt, now())
			}
			found, err := f.platform.Lookup(t.Context(), f.job(text))
			want := platforms.Finding{Matches: 1, ExternalID: got.ExternalID, ExternalURL: got.ExternalURL, PostedAt: got.PostedAt}
			if diff := cmp.Diff(want, found); diff != "" || err != nil {
				t.Errorf("what was published must be found again: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func (s *Suite) testVerdicts(t *testing.T) {
	tests := map[string]struct {
		reason  string
		fault   sandboxtest.Fault
		verdict platforms.Verdict
		class   platforms.Class
		posts   int
	}{
		"closed before":  {"the call arrived and was lost", sandboxtest.Fault{Kind: "drop_before"}, platforms.Unknown, "", 0},
		"closed after":   {"the answer was lost", sandboxtest.Fault{Kind: "drop_after"}, platforms.Unknown, "", 1},
		"error after":    {"an error does not prove that nothing happened", sandboxtest.Fault{Kind: "error_after", Status: 500}, platforms.Unknown, "", 1},
		"bad gateway":    {"nor does one of something in between", sandboxtest.Fault{Kind: "error_after", Status: 502}, platforms.Unknown, "", 1},
		"timeout status": {"nor does a timeout of something in between", sandboxtest.Fault{Kind: "error_after", Status: 408}, platforms.Unknown, "", 1},
		"unavailable":    {"an outage may come after the act", sandboxtest.Fault{Kind: "status", Status: 503}, platforms.Unknown, "", 0},
		"redirect":       {"following it would send the post twice", sandboxtest.Fault{Kind: "status", Status: 307}, platforms.Unknown, "", 0},
		"rate limited":   {"a limit refuses, and passes", sandboxtest.Fault{Kind: "rate_limit", RetryAfterS: 60}, platforms.Refused, platforms.ClassRateLimited, 0},
		"token expired":  {"an ended token refuses, and is renewed", sandboxtest.Fault{Kind: "token_expired"}, platforms.Refused, platforms.ClassRefresh, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := s.start(t)
			tc.fault.Operation, tc.fault.Times = "publish", 1
			f.fault(t, tc.fault)
			got := f.platform.Publish(t.Context(), f.job("hello"))
			if got.Verdict != tc.verdict || got.Err == nil || tc.class != "" && got.Err.Class != tc.class {
				t.Errorf("%s: got %+v (%v)", tc.reason, got, got.Err)
			}
			if tc.class == platforms.ClassRateLimited && !got.Err.RetryAt.After(now()) {
				t.Errorf("the platform said when to try again, but RetryAt is %v", got.Err.RetryAt)
			}
			if n := f.arrived(t); n != 1 {
				t.Errorf("%d calls arrived for one publication", n)
			}
			found, err := f.platform.Lookup(t.Context(), f.job("hello"))
			if err != nil || found.Matches != tc.posts || len(f.published(t)) != tc.posts {
				t.Errorf("%s: found %+v, %v; the sandbox holds %d", tc.reason, found, err, len(f.published(t)))
			}
		})
	}
}

func (s *Suite) testLookup(t *testing.T) {
	f := s.start(t)
	first := f.platform.Publish(t.Context(), f.job("hello"))
	f.platform.Publish(t.Context(), f.job("something else"))
	tests := map[string]struct {
		reason string
		change func(job *platforms.Job)
		want   int
	}{
		"there":        {"the post is found among others", func(*platforms.Job) {}, 1},
		"another text": {"other posts are no answer", func(j *platforms.Job) { j.Content.Text = "hello you" }, 0},
		"taken": {"a post of another job is passed over", func(j *platforms.Job) {
			j.Taken = func(id string) bool { return id == first.ExternalID }
		}, 0},
		"too old": {"what is older than the job is passed over", func(j *platforms.Job) { j.LookFrom = now().Add(time.Second) }, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := f.job("hello")
			tc.change(&job)
			found, err := f.platform.Lookup(t.Context(), job)
			if err != nil || found.Matches != tc.want {
				t.Errorf("%s: found %+v, %v", tc.reason, found, err)
			}
		})
	}
	for _, fault := range []sandboxtest.Fault{{Kind: "status", Status: 500}, {Kind: "rate_limit"}, {Kind: "token_expired"}} {
		t.Run(fault.Kind, func(t *testing.T) {
			fault.Operation, fault.Times = "list", 1
			f.fault(t, fault)
			if found, err := f.platform.Lookup(t.Context(), f.job("hello")); classOf(err) == "" {
				t.Errorf("without an answer absence must not be reported: %+v, %v", found, err)
			}
		})
	}
}

func (s *Suite) testAccounts(t *testing.T) {
	f := s.start(t)
	identity, err := f.platform.Identify(t.Context(), f.token())
	if err != nil || identity.AccountID != f.account.ID || identity.Username != f.account.Username || identity.DisplayName == "" {
		t.Errorf("got %+v, %v; want account %s", identity, err, f.account.ID)
	}
	if _, err := f.platform.Identify(t.Context(), platforms.Token{Access: "nobody's"}); classOf(err) != platforms.ClassRefresh && classOf(err) != platforms.ClassReconnect {
		t.Errorf("a token that is nobody's gives %v", err)
	}
	renewed, err := f.platform.Refresh(t.Context(), f.token())
	if err != nil || renewed.Access == "" || renewed.Access == f.account.AccessToken {
		t.Fatalf("the token was not renewed: %v", err)
	}
	if identity, err := f.platform.Identify(t.Context(), renewed); err != nil || identity.AccountID != f.account.ID {
		t.Errorf("the renewed token gives %+v, %v", identity, err)
	}
	if !renewed.ExpiresAt.IsZero() && !renewed.ExpiresAt.After(now()) {
		t.Errorf("the renewed token ended at %v", renewed.ExpiresAt)
	}
	f.fault(t, sandboxtest.Fault{Operation: "refresh_token", Kind: "token_revoked", Times: 1})
	if _, err := f.platform.Refresh(t.Context(), renewed); classOf(err) != platforms.ClassReconnect {
		t.Errorf("a grant that was taken back gives %v, want that a person is needed", err)
	}
	f.fault(t, sandboxtest.Fault{Operation: "refresh_token", Kind: "status", Status: 503, Times: 1})
	if _, err := f.platform.Refresh(t.Context(), renewed); classOf(err) != platforms.ClassTransient {
		t.Errorf("an outage gives %v, want that it passes", err)
	}
}

func (s *Suite) testLimits(t *testing.T) {
	limits := s.New(t, "http://herald.invalid").Limits()
	if len(limits.Categories) == 0 || limits.CallTimeout <= 0 || limits.ListingLag <= 0 {
		t.Errorf("the limits are not all declared: %+v", limits)
	}
	if limits.MaxCaption > 0 && (limits.CaptionLength == nil || limits.CaptionUnit == "") {
		t.Error("a caption that has a greatest length must be counted, in a unit that people know")
	}
	if limits.CaptionProblem != nil && limits.CaptionProblem("We launched.") != "" {
		t.Error("an ordinary caption must be fine")
	}
}

func classOf(err error) platforms.Class {
	if failure, ok := errors.AsType[*platforms.Error](err); ok {
		return failure.Class
	}
	return ""
}
