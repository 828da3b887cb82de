// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/test/must"
)

// finishing is a platform with remaining work for a post after it is found.
type finishing struct {
	finding

	found    platforms.LookupResult
	finished *[]string
	note     string
}

func (p finishing) Lookup(context.Context, platforms.Job) (platforms.LookupResult, error) {
	return p.found, nil
}

func (p finishing) Finish(_ context.Context, job platforms.Job, externalID string) string {
	*p.finished = append(*p.finished, externalID+" "+job.AcceptedAt.UTC().Format(time.RFC3339))
	return p.note
}

func TestFinish(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		found    platforms.LookupResult
		note     string
		finished int
		want     string
	}{
		"named":             {"the match is certain", platforms.LookupResult{Matches: 1, ExternalID: "7", Certain: true}, "", 1, ""},
		"with a note":       {"the note reports what could not be done", platforms.LookupResult{Matches: 1, ExternalID: "7", Certain: true}, "no picture", 1, "no picture"},
		"with notes":        {"the lookup's note is added", platforms.LookupResult{Matches: 1, ExternalID: "7", Certain: true, Note: "private"}, "no picture", 1, "private; no picture"},
		"a note of its own": {"a note of the platform is kept", platforms.LookupResult{Matches: 1, ExternalID: "7", Certain: true, Note: "private"}, "", 1, "private"},
		"found by text":     {"the listed post may be another one", platforms.LookupResult{Matches: 1, ExternalID: "7"}, "no picture", 0, ""},
		"at work":           {"the post does not exist yet", platforms.LookupResult{OperationID: "7"}, "no picture", 0, ""},
		"absent":            {"the post does not exist", platforms.LookupResult{}, "no picture", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			must.Succeed(t, v1alpha1.AddToScheme(scheme))
			self := working("self", "hello")
			self.Status.Targets[0].Attempt.EndedAt = v1alpha1.NewTimePtr(started)
			clk := clocktesting.NewFakePassiveClock(started.Add(time.Minute))
			c := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.Post{}, openIndex, openAccounts).
				WithIndex(&v1alpha1.Connection{}, accountIndex, connectedAccount).WithObjects(self).Build()
			l := &Lookups{
				Client: c, APIReader: c, Clock: clk, Owners: NewOwners(&team{}, clocktesting.NewFakeClock(clk.Now())), Preparer: &prepare.Preparer{},
				Token: func(context.Context, *v1alpha1.Connection) (platforms.Token, error) { return platforms.Token{}, nil },
			}
			var finished []string
			f := &delivery.Facts{
				View: posting.Of(self), Now: clk.Now(), Platforms: platforms.Registry{v1alpha1.PlatformX: finishing{finding{}, tc.found, &finished, tc.note}},
				Connections: map[string]*v1alpha1.Connection{"page": {
					ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "page"}, Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: "4711"},
				}},
			}
			a := l.Lookup(t.Context(), f, []int{0})[0]
			if a.Err != nil || a.Note != tc.want || len(finished) != tc.finished {
				t.Errorf("note %q, finished %q, %v: %s", a.Note, finished, a.Err, tc.reason)
			}
			if tc.finished > 0 && finished[0] != "7 "+started.UTC().Format(time.RFC3339) {
				t.Errorf("finished %q", finished)
			}
		})
	}
}

var started = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// working returns a post with one target per caption. The platform has accepted the calls and is still processing them.
func working(name string, captions ...string) *v1alpha1.Post {
	post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
	for i, caption := range captions {
		post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "page"}, Caption: caption})
		post.Status.Targets = append(post.Status.Targets, v1alpha1.TargetStatus{
			Index: int32(i), Platform: v1alpha1.PlatformX,
			Attempt: &v1alpha1.Attempt{
				Number: 1, ID: "a", AccountID: "4711", OperationID: "op", StartedAt: v1alpha1.NewTime(started), SendBefore: v1alpha1.NewTime(started),
			},
		})
	}
	return post
}

// TestAmbiguous checks which posts may have published the post that a lookup has found. The cache omits the text of
// large posts.
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("many words ", 1000)
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	for name, tc := range map[string]struct {
		reason string
		said   string
		other  *v1alpha1.Post
		// now is the other post as it is in the API server, or nil if it was deleted.
		now  *v1alpha1.Post
		want bool
	}{
		"small, the same text":    {"the cache contains it", "hello", working("other", "hello"), working("other", "hello"), true},
		"small, another text":     {"the texts differ", "hello", working("other", "bye"), working("other", "bye"), false},
		"large, the same text":    {"the post is read from the API server", large, working("other", "first", large), working("other", "first", large), true},
		"large, another text":     {"no text does not match a post without a text", "", working("other", "first", large), working("other", "first", large), false},
		"large, and deleted":      {"a deleted post has no targets to look up", "hello", working("other", large, large), nil, false},
		"large, deleted, no text": {"a deleted post has no known text, unlike a post without a text", "", working("other", large, large), nil, false},
		"large, of another UID":   {"another post has its name", "hello", working("other", large, large), func() *v1alpha1.Post { p := working("other", "hello"); p.UID = "new"; return p }(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := tc.other.DeepCopy()
			if _, err := kubeclient.TransformForCache(kept); err != nil {
				t.Fatal(err)
			}
			live := fake.NewClientBuilder().WithScheme(scheme)
			if tc.now != nil {
				live = live.WithObjects(tc.now)
			}
			self := working("self", tc.said)
			l := &Lookups{
				Client:    fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.Post{}, openIndex, openAccounts).WithObjects(self, kept).Build(),
				APIReader: live.Build(), Clock: clocktesting.NewFakePassiveClock(started),
			}
			err := l.ambiguous(t.Context(), &delivery.Facts{View: posting.Of(self)}, &self.Status.Targets[0])
			if (err != nil) != tc.want {
				t.Errorf("%v, want an error: %v: %s", err, tc.want, tc.reason)
			}
		})
	}
}

// finding is a platform that lists one post, unless the post belongs to another target.
type finding struct {
	platforms.Publisher
	shows string
}

func (finding) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{CallTimeout: time.Second, ListingLag: time.Second}
}

func (p finding) Lookup(_ context.Context, job platforms.Job) (platforms.LookupResult, error) {
	if job.BelongsToOther(p.shows) {
		return platforms.LookupResult{}, nil
	}
	return platforms.LookupResult{Matches: 1, ExternalID: p.shows}, nil
}

// TestIDOfAnEqualPost enters the id of one of two posts with equal text, and checks the lookup for the other one, which
// finds the same id.
func TestIDOfAnEqualPost(t *testing.T) {
	t.Parallel()
	const found, taken, uncertain = "found", "taken", "uncertain"
	told := func(unconfirmed bool) *v1alpha1.Post {
		p := working("told", "hello")
		if err := attempt.Resolve(undecided(&p.Status.Targets[0]), attempt.Resolution{ExternalID: "1991", AccountID: map[bool]string{false: "4711"}[unconfirmed]}, 1, started, started); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, tc := range map[string]struct {
		reason string
		told   *v1alpha1.Post
		want   string
	}{
		"confirmed":               {"the candidate certainly belongs to the other post", told(false), taken},
		"unconfirmed":             {"neither owner is proved: do not record this post as published, and do not send it again", told(true), uncertain},
		"a tree's card":           {"cards follow the same rule", tree(told(true)), uncertain},
		"of a post without calls": {"a copy from a backup has no account", func() *v1alpha1.Post { p := told(true); p.Status.Targets[0].Attempt.AccountID = ""; return p }(), uncertain},
		"of another namespace":    {"another namespace cannot claim the candidate", func() *v1alpha1.Post { p := told(true); p.Namespace = "others"; return p }(), found},
		"of another platform":     {"an id belongs to one platform", func() *v1alpha1.Post { p := told(true); p.Status.Targets[0].Platform = "threads"; return p }(), found},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			must.Succeed(t, v1alpha1.AddToScheme(scheme))
			self := working("self", "hello")
			clk := clocktesting.NewFakePassiveClock(started.Add(time.Minute))
			c := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.Post{}, openIndex, openAccounts).
				WithIndex(&v1alpha1.Connection{}, accountIndex, connectedAccount).WithObjects(self).Build()
			owners := NewOwners(&team{}, clocktesting.NewFakeClock(clk.Now()))
			owners.Record(tc.told)
			l := &Lookups{
				Client: c, APIReader: c, Clock: clk, Owners: owners, Preparer: &prepare.Preparer{},
				Token: func(context.Context, *v1alpha1.Connection) (platforms.Token, error) { return platforms.Token{}, nil },
			}
			conn := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "page"}, Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: "4711"}}
			f := &delivery.Facts{
				View: posting.Of(self), Now: clk.Now(), Connections: map[string]*v1alpha1.Connection{"page": conn},
				Platforms: platforms.Registry{v1alpha1.PlatformX: finding{shows: "1991"}},
			}
			a := l.Lookup(t.Context(), f, []int{0})[0]
			got := taken
			switch {
			case a.Err != nil:
				got = uncertain
			case a.Matches == 1:
				got = found
			}
			if got != tc.want {
				t.Errorf("%s (%v), want %s: %s", got, a.Err, tc.want, tc.reason)
			}
		})
	}
}

// undecided makes a target undecided.
func undecided(t *v1alpha1.TargetStatus) *v1alpha1.TargetStatus {
	t.Attempt.Outcome, t.State = v1alpha1.OutcomeUnknown, v1alpha1.TargetUndecided
	return t
}

// tree moves the entered id to a second card.
func tree(p *v1alpha1.Post) *v1alpha1.Post {
	t := &p.Status.Targets[0]
	t.Cards = []v1alpha1.CardStatus{{ExternalID: "1990"}, {Index: 1, ExternalID: t.ExternalID, Unconfirmed: true}}
	t.ExternalID, t.Unconfirmed = "1990", false
	return p
}

// TestUnusableCredentials checks that the platform is not queried with unusable credentials, and that the kind of
// problem determines the retries. Lookups has no Preparer here, so any query would panic.
func TestUnusableCredentials(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		err    error
		class  platforms.Class
		last   bool
	}{
		{
			"the new credentials may belong to another account, which does not list the post",
			&credentials.Error{Reason: credentials.Unverified, Message: "not checked yet"}, platforms.ClassTransient, false,
		},
		{"a user has to correct them", &credentials.Error{Reason: credentials.Invalid, Message: "no token"}, platforms.ClassReconnect, false},
		{
			"the credentials were deleted",
			&credentials.Error{Reason: credentials.NotFound, Message: "no Secret", Err: apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "page")},
			platforms.ClassReconnect, true,
		},
	} {
		l := &Lookups{
			Clock: clocktesting.NewFakePassiveClock(started),
			Token: func(context.Context, *v1alpha1.Connection) (platforms.Token, error) { return platforms.Token{}, tc.err },
		}
		f := &delivery.Facts{
			View: posting.Of(working("self", "hello")), Now: started.Add(time.Minute), Platforms: platforms.Registry{v1alpha1.PlatformX: finding{}},
			Connections: map[string]*v1alpha1.Connection{"page": {
				ObjectMeta: metav1.ObjectMeta{Name: "page"}, Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: "4711"},
			}},
		}
		a := l.Lookup(t.Context(), f, []int{0})[0]
		if a.Err == nil || a.Err.Class != tc.class || a.Last != tc.last || !strings.Contains(a.Err.Problem, tc.err.Error()) {
			t.Errorf("%s: got %+v, last %t; want %s, last %t", tc.reason, a.Err, a.Last, tc.class, tc.last)
		}
	}
}
