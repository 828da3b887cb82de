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
		"named":             {"it is certainly this post", platforms.LookupResult{Matches: 1, ExternalID: "7", Certain: true}, "", 1, ""},
		"with a note":       {"people learn what could not be done", platforms.LookupResult{Matches: 1, ExternalID: "7", Certain: true}, "no picture", 1, "no picture"},
		"with notes":        {"and what the lookup told", platforms.LookupResult{Matches: 1, ExternalID: "7", Certain: true, Note: "private"}, "no picture", 1, "private; no picture"},
		"a note of its own": {"that stays", platforms.LookupResult{Matches: 1, ExternalID: "7", Certain: true, Note: "private"}, "", 1, "private"},
		"found by words":    {"it may be another's", platforms.LookupResult{Matches: 1, ExternalID: "7"}, "no picture", 0, ""},
		"at work":           {"nothing is there yet", platforms.LookupResult{OperationID: "7"}, "no picture", 0, ""},
		"absent":            {"nothing is there", platforms.LookupResult{}, "no picture", 0, ""},
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
				Post: self, Now: clk.Now(), Platforms: platforms.Registry{v1alpha1.PlatformX: finishing{finding{}, tc.found, &finished, tc.note}},
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
