// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/test/must"
)

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

// TestTold enters the id of one of two posts with equal text, and checks the lookup for the other one, which finds the
// same id.
func TestTold(t *testing.T) {
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
		"confirmed":               {"it is certainly that one's, so that this one's is not there", told(false), taken},
		"unconfirmed":             {"neither is known: nobody must take this one for published, nor send it again", told(true), uncertain},
		"a tree's card":           {"the same holds for cards", tree(told(true)), uncertain},
		"of a post without calls": {"a copy from a backup has no account", func() *v1alpha1.Post { p := told(true); p.Status.Targets[0].Attempt.AccountID = ""; return p }(), uncertain},
		"of another namespace":    {"the word of a stranger takes nothing away", func() *v1alpha1.Post { p := told(true); p.Namespace = "others"; return p }(), found},
		"of another platform":     {"it is about another post", func() *v1alpha1.Post { p := told(true); p.Status.Targets[0].Platform = "threads"; return p }(), found},
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
				Post: self, Now: clk.Now(), Connections: map[string]*v1alpha1.Connection{"page": conn},
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
