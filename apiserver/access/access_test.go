// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
)

var (
	begin = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	ada   = access.Person{Name: "oidc:ada", Groups: []string{"oidc:a"}}
)

// reviews is a fake that responds with allow and counts its calls.
type reviews struct {
	allow func(authorizationv1.SubjectAccessReviewSpec) (bool, error)
	asked atomic.Int64
	gate  chan struct{}
	inUse atomic.Int64
	most  atomic.Int64
}

func (r *reviews) Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	r.asked.Add(1)
	if now := r.inUse.Add(1); now > r.most.Load() {
		r.most.Store(now)
	}
	defer r.inUse.Add(-1)
	if r.gate != nil {
		select {
		case <-r.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	allowed, err := r.allow(review.Spec)
	out := review.DeepCopy()
	out.Status.Allowed = allowed
	return out, err
}

func teamsOf(n int) []*v1alpha1.Team {
	teams := make([]*v1alpha1.Team, n)
	for i := range teams {
		name := fmt.Sprintf("team-%04d", n-i)
		teams[i] = &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TeamSpec{Namespace: name}}
	}
	return teams
}

func checker(r *reviews, clk *clocktesting.FakeClock, teams ...*v1alpha1.Team) *access.Checker {
	return access.New(r, func() []*v1alpha1.Team { return teams }, clk)
}

func TestReviewsAreCached(t *testing.T) {
	clk := clocktesting.NewFakeClock(begin)
	allowed := true
	r := &reviews{allow: func(authorizationv1.SubjectAccessReviewSpec) (bool, error) { return allowed, nil }}
	c := checker(r, clk)
	ask := func(want bool, asked int64, reason string, p access.Person, args ...string) {
		t.Helper()
		got, err := c.May(t.Context(), p, args[0], args[1], args[2], args[3:]...)
		if err != nil || got != want || r.asked.Load() != asked {
			t.Errorf("%s: got %v, %v after %d reviews, want %v after %d", reason, got, err, r.asked.Load(), want, asked)
		}
	}
	ask(true, 1, "a first question", ada, "a", "list", "posts")
	ask(true, 1, "the same once more", ada, "a", "list", "posts")
	ask(true, 2, "another namespace", ada, "b", "list", "posts")
	ask(true, 3, "another verb", ada, "a", "create", "posts")
	ask(true, 4, "another resource", ada, "a", "list", "media")
	ask(true, 5, "one object", ada, "a", "list", "posts", "launch")
	ask(true, 6, "another person", access.Person{Name: "oidc:bob", Groups: ada.Groups}, "a", "list", "posts")
	ask(true, 7, "the same user with fewer groups", access.Person{Name: ada.Name}, "a", "list", "posts")
	allowed = false
	clk.Step(4 * time.Second)
	ask(true, 7, "within some seconds", ada, "a", "list", "posts")
	clk.Step(2 * time.Second)
	ask(false, 8, "a revoked right", ada, "a", "list", "posts")
	allowed = true
	ask(false, 8, "a refusal is kept as well", ada, "a", "list", "posts")
}

func TestQuestion(t *testing.T) {
	var got authorizationv1.SubjectAccessReviewSpec
	c := checker(&reviews{allow: func(spec authorizationv1.SubjectAccessReviewSpec) (bool, error) { got = spec; return true, nil }}, clocktesting.NewFakeClock(begin))
	if _, err := c.May(t.Context(), ada, "team-a", "get", "posts/status", "launch"); err != nil {
		t.Fatal(err)
	}
	want := authorizationv1.ResourceAttributes{
		Namespace: "team-a", Verb: "get", Group: "social.herald.dev", Version: "v1alpha1", Resource: "posts", Subresource: "status", Name: "launch",
	}
	if *got.ResourceAttributes != want || got.User != ada.Name || len(got.Groups) != 1 {
		t.Errorf("got the user %+v and the resource %+v", got, got.ResourceAttributes)
	}
	if _, err := c.May(t.Context(), ada, "team-a", "list", "rolebindings.rbac.authorization.k8s.io"); err != nil {
		t.Fatal(err)
	}
	want = authorizationv1.ResourceAttributes{Namespace: "team-a", Verb: "list", Group: "rbac.authorization.k8s.io", Version: "*", Resource: "rolebindings"}
	if *got.ResourceAttributes != want {
		t.Errorf("got another API's resource: %+v", got.ResourceAttributes)
	}
}

// TestFailsClosed verifies that a failed review allows nothing and is not cached.
func TestFailsClosed(t *testing.T) {
	away := errors.New("connection refused")
	var trouble error
	r := &reviews{allow: func(authorizationv1.SubjectAccessReviewSpec) (bool, error) { return true, trouble }}
	c := checker(r, clocktesting.NewFakeClock(begin), teamsOf(3)...)
	trouble = away
	if ok, err := c.May(t.Context(), ada, "a", "list", "posts"); ok || !errors.Is(err, away) {
		t.Errorf("got %v, %v", ok, err)
	}
	if teams, err := c.Teams(t.Context(), ada); len(teams) > 0 || !errors.Is(err, away) {
		t.Errorf("got %d teams, %v", len(teams), err)
	}
	trouble = nil
	if ok, err := c.May(t.Context(), ada, "a", "list", "posts"); !ok || err != nil {
		t.Errorf("a failed check was cached: %v, %v", ok, err)
	}
	if ok, err := c.May(t.Context(), access.Person{}, "a", "list", "posts"); ok || err == nil {
		t.Errorf("a person without a name: %v, %v", ok, err)
	}
	if teams, err := c.Teams(t.Context(), access.Person{}); len(teams) > 0 || err == nil {
		t.Errorf("teams of a person without a name: %v, %v", teams, err)
	}
}

// TestTogether verifies that concurrent calls with the same key share one review, and that canceling one of them does
// not affect the others.
func TestTogether(t *testing.T) {
	r := &reviews{gate: make(chan struct{}), allow: func(authorizationv1.SubjectAccessReviewSpec) (bool, error) { return true, nil }}
	c := checker(r, clocktesting.NewFakeClock(begin))
	left, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := c.May(left, ada, "a", "list", "posts")
		gone <- err
	}()
	var waiting sync.WaitGroup
	for range 20 {
		waiting.Go(func() {
			if ok, err := c.May(t.Context(), ada, "a", "list", "posts"); !ok || err != nil {
				t.Errorf("got %v, %v", ok, err)
			}
		})
	}
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled request got %v", err)
	}
	close(r.gate)
	waiting.Wait()
	if asked := r.asked.Load(); asked != 1 {
		t.Errorf("%d reviews", asked)
	}
}

func TestTeams(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		allow  func(namespace string) bool
		want   int
		asked  int64
	}{
		"one team":  {"each permission is checked", func(n string) bool { return n == "team-0007" }, 1, 1001},
		"no team":   {"a stranger", func(string) bool { return false }, 0, 1001},
		"all teams": {"an administrator needs only one check", func(n string) bool { return n == "" }, 1000, 1},
	} {
		t.Run(name, func(t *testing.T) {
			clk := clocktesting.NewFakeClock(begin)
			r := &reviews{allow: func(spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
				return tc.allow(spec.ResourceAttributes.Namespace), nil
			}}
			c := checker(r, clk, teamsOf(1000)...)
			for range 3 {
				got, err := c.Teams(t.Context(), ada)
				if err != nil || len(got) != tc.want || r.asked.Load() != tc.asked {
					t.Fatalf("%s: got %d teams, %v, after %d reviews, want %d after %d", tc.reason, len(got), err, r.asked.Load(), tc.want, tc.asked)
				}
				for i := 1; i < len(got); i++ {
					if got[i-1].Name > got[i].Name {
						t.Fatalf("%s is listed before %s", got[i-1].Name, got[i].Name)
					}
				}
			}
			if most := r.most.Load(); most > 32 {
				t.Errorf("%d concurrent checks", most)
			}
			clk.Step(21 * time.Second)
			if _, err := c.Teams(t.Context(), ada); err != nil || r.asked.Load() != 2*tc.asked {
				t.Errorf("after 21 s: %v, %d reviews", err, r.asked.Load())
			}
		})
	}
}
