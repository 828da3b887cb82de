// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/plan"
)

func at(d time.Duration) *v1alpha1.Time { return v1alpha1.NewTimePtr(now.Add(d)) }

func TestCreateChecks(t *testing.T) {
	t.Parallel()
	optionProblem := func(*v1alpha1.PostTarget, bool, *v1alpha1.ConnectionStatus, *field.Path) field.ErrorList {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "targets").Index(0).Child("tiktok"), "this account cannot choose it")}
	}
	is := func(state readiness.State) func(context.Context, *v1alpha1.Connection) readiness.Result {
		return func(context.Context, *v1alpha1.Connection) readiness.Result {
			return readiness.Result{State: state, Message: "so it is"}
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		change  func(in *bridge.CreatePost, s *bridge.Service)
		want    string
		message string
	}{
		"LastYear": {"the last supported year is accepted", func(in *bridge.CreatePost, _ *bridge.Service) {
			in.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Date(2999, 12, 31, 23, 59, 59, 0, time.UTC))
		}, "", ""},
		"AfterTheLastYear": {"its year is not supported", func(in *bridge.CreatePost, _ *bridge.Service) {
			in.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC))
		}, "VALIDATION_ERROR", "scheduled_at: must not be after the year 2999"},
		"Past": {"a past time cannot be kept", func(in *bridge.CreatePost, _ *bridge.Service) { in.Spec.ScheduledAt = at(-time.Hour) }, "VALIDATION_ERROR", "scheduled_at: "},
		"Problems": {"problems from outside the post are included", func(in *bridge.CreatePost, _ *bridge.Service) {
			in.Problems = []string{"targets[0].tiktok: no"}
		}, "VALIDATION_ERROR", "targets[0].tiktok: no"},
		"Reconnect": {"a user has to reconnect the account", func(_ *bridge.CreatePost, s *bridge.Service) {
			s.Readiness = is(readiness.Reconnect)
		}, "POSTING_READINESS_RECONNECT_REQUIRED", `nothing was posted; connection "acme" (x): so it is. Connect`},
		"Unavailable": {"the account may recover", func(_ *bridge.CreatePost, s *bridge.Service) {
			s.Readiness = is(readiness.Unavailable)
		}, "POSTING_READINESS_UNAVAILABLE", `nothing was posted; connection "acme" (x): so it is. Resend`},
		"Draft": {"a draft's account may become ready later", func(in *bridge.CreatePost, s *bridge.Service) {
			in.Spec.Draft = true
			s.Readiness = is(readiness.Reconnect)
		}, "", ""},
		"Options": {"problems of the post come before the account's state", func(_ *bridge.CreatePost, s *bridge.Service) {
			s.Readiness = is(readiness.Reconnect)
			s.Capabilities = func(v1alpha1.Platform) (platforms.Capabilities, bool) {
				return platforms.Capabilities{Categories: []v1alpha1.Category{v1alpha1.CategoryText}, ValidateOptions: optionProblem}, true
			}
		}, "TIKTOK_PRIVACY_LEVEL_UNAVAILABLE", "this account cannot choose it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &posts{stored: map[string]*v1alpha1.Post{}}
			s, in := service(p, inMemory("acme")), hello("acme")
			tc.change(&in, s)
			_, err := s.CreatePost(t.Context(), caller, in)
			if code(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.message) {
				t.Errorf("%s: error %v, want %q with %q", tc.reason, err, tc.want, tc.message)
			}
			if want := map[bool]int{true: 1}[tc.want == ""]; len(p.stored) != want {
				t.Errorf("%s: %d posts, want %d", tc.reason, len(p.stored), want)
			}
		})
	}
}

// TestReadinessOfManyConnections verifies that all of a post's accounts are checked, and that all problems are reported.
func TestReadinessOfManyConnections(t *testing.T) {
	t.Parallel()
	const many = 5
	c := &connections{memory: map[string]*v1alpha1.Connection{}}
	in := hello("c0")
	in.Spec.Targets = nil
	for i := range many {
		name := fmt.Sprint("c", i)
		c.memory[name] = onX(name)
		in.Spec.Targets = append(in.Spec.Targets, target(name))
	}
	s := service(&posts{stored: map[string]*v1alpha1.Post{}}, c)
	var asked sync.WaitGroup
	asked.Add(many)
	s.Readiness = func(_ context.Context, connection *v1alpha1.Connection) readiness.Result {
		asked.Done()
		asked.Wait() // returns only if all checks are concurrent
		state := readiness.Unavailable
		if connection.Name == "c3" || connection.Name == "c1" {
			state = readiness.Reconnect
		}
		return readiness.Result{State: state, Message: "no"}
	}
	_, err := s.CreatePost(t.Context(), caller, in)
	const want = `nothing was posted; connection "c1" (x): no; connection "c3" (x): no. Connect the account again, then resend the post.`
	if code(err) != "POSTING_READINESS_RECONNECT_REQUIRED" || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestCreateReturnsLatestAccountName verifies that the response has the account name that a readiness check has just recorded.
func TestCreateReturnsLatestAccountName(t *testing.T) {
	t.Parallel()
	learnt := onX("acme")
	learnt.Status.AccountName = "Acme"
	for name, tc := range map[string]struct {
		reason      string
		connections *connections
		learns      bool
		want        string
	}{
		"Learnt":   {"the name is in memory", inMemory("acme"), true, "Acme"},
		"OnlyLive": {"the watch is delayed", &connections{live: map[string]*v1alpha1.Connection{"acme": learnt}}, false, "Acme"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := service(&posts{stored: map[string]*v1alpha1.Post{}}, tc.connections)
			s.Readiness = func(context.Context, *v1alpha1.Connection) readiness.Result {
				if tc.learns {
					tc.connections.memory["acme"] = learnt
				}
				return readiness.Result{State: readiness.Ready}
			}
			got, err := s.CreatePost(t.Context(), caller, hello("acme"))
			if err != nil || len(got.Platforms) != 1 || got.Platforms[0].AccountName != tc.want || got.Platforms[0].ConnectionID != "acme" {
				t.Errorf("%s: got %+v, %v", tc.reason, got.Platforms, err)
			}
			if listed := pageOf(t, s, caller, postindex.Query{Platform: v1alpha1.PlatformX}).Posts; len(listed) != 1 || len(listed[0].Platforms) != 1 {
				t.Errorf("%s: the list does not show the new post: %+v", tc.reason, listed)
			}
		})
	}
}

// asking counts the requests to the Kubernetes API.
type asking struct {
	*connections

	live int
}

func (a *asking) Live(ctx context.Context, namespace, name string) (*v1alpha1.Connection, error) {
	a.live++
	return a.connections.Live(ctx, namespace, name)
}

func TestCreateReadsConnectionsOnce(t *testing.T) {
	t.Parallel()
	a := &asking{connections: &connections{live: map[string]*v1alpha1.Connection{"acme": onX("acme")}}}
	s := service(&posts{stored: map[string]*v1alpha1.Post{}}, a.connections)
	s.Connections = a
	if _, err := s.CreatePost(t.Context(), caller, hello("acme")); err != nil || a.live != 1 {
		t.Errorf("sent %d requests for one connection that is not in memory: %v", a.live, err)
	}
}

// TestCreateWithReservedUsage verifies the plan's limit on accounts.
func TestCreateWithReservedUsage(t *testing.T) {
	t.Parallel()
	most := plan.LimitsOf(starter{}.Owner("")).Accounts
	var all []*v1alpha1.Connection
	for i := range most {
		all = append(all, account(fmt.Sprint("c", i), v1alpha1.PlatformThreads, i, nil))
	}
	beyond := account("beyond", v1alpha1.PlatformThreads, most, nil)
	leaving := account("leaving", v1alpha1.PlatformThreads, most, func(c *v1alpha1.Connection) { c.DeletionTimestamp = &metav1.Time{Time: now} })
	for name, tc := range map[string]struct {
		reason   string
		owner    func(string) *v1alpha1.Team
		to       *v1alpha1.Connection
		listed   bool
		want     string
		notFound bool
	}{
		"Covered":   {"the connection is among the oldest", starter{}.Owner, all[0], true, "", false},
		"Beyond":    {"the plan does not include the account", starter{}.Owner, beyond, true, "SUBSCRIPTION_REQUIRED", false},
		"NotListed": {"the watch is delayed, and the plan does not include the account", starter{}.Owner, beyond, false, "SUBSCRIPTION_REQUIRED", false},
		"NoLimit":   {"another plan includes all", owner{}.Owner, beyond, true, "", false},
		"Missing":   {"plans do not matter for missing connections", starter{}.Owner, account("none", "", 0, nil), false, "VALIDATION_ERROR", true},
		"Leaving":   {"plans do not matter for connections that are being deleted", starter{}.Owner, leaving, true, "VALIDATION_ERROR", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &listing{all: slices.Clone(all)}
			l.memory = map[string]*v1alpha1.Connection{}
			if !tc.notFound {
				l.memory[tc.to.Name] = tc.to
			}
			if tc.listed {
				l.all = append(l.all, tc.to)
			}
			s := service(&posts{stored: map[string]*v1alpha1.Post{}}, &connections{})
			s.Connections, s.Owner, s.Quota = l, tc.owner, newCounts()
			if _, err := s.CreatePost(t.Context(), caller, hello(tc.to.Name)); code(err) != tc.want {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestRejectionMessages verifies the messages about rejections by the Kubernetes API.
func TestRejectionMessages(t *testing.T) {
	t.Parallel()
	refused := func(causes ...metav1.StatusCause) error {
		err := apierrors.NewInvalid(schema.GroupKind{Kind: "Post"}, "p", nil)
		err.ErrStatus.Details.Causes = causes
		return err
	}
	bare := apierrors.NewInvalid(schema.GroupKind{Kind: "Post"}, "p", nil)
	bare.ErrStatus.Details = nil
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
		text   string
	}{
		"Field":   {"the cause has a field", refused(metav1.StatusCause{Field: "spec.scheduledAt", Message: "bad"}), "VALIDATION_ERROR", "scheduled_at: bad"},
		"NoField": {"the cause has no field", refused(metav1.StatusCause{Message: "bad"}), "VALIDATION_ERROR", "bad"},
		"Nil":     {"Kubernetes writes <nil> for no field", refused(metav1.StatusCause{Field: "<nil>", Message: "bad"}), "VALIDATION_ERROR", "bad"},
		"Spec":    {"the spec itself is not a field of the request", refused(metav1.StatusCause{Field: "spec", Message: "bad"}), "VALIDATION_ERROR", "bad"},
		"NoCause": {"the error has no message for the client", refused(), "internal", "create a post: "},
		"Bare":    {"the error has no message for the client", bare, "internal", "create a post: "},
		"Down":    {"the post may have been stored", apierrors.NewServiceUnavailable("down"), "uncertain", ""},
		"Server":  {"the post may have been stored", apierrors.NewServerTimeout(resource, "create", 1), "uncertain", ""},
		"Error":   {"the post may have been stored", apierrors.NewInternalError(errors.New("boom")), "uncertain", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fault{false, tc.err}
			p := &posts{stored: map[string]*v1alpha1.Post{}, faults: []fault{f, f, f}}
			_, err := service(p, inMemory("acme")).CreatePost(t.Context(), caller, hello("acme"))
			if code(err) != tc.want || tc.want == "VALIDATION_ERROR" && err.Error() != tc.text || !strings.HasPrefix(err.Error(), tc.text) {
				t.Errorf("%s: error %v, want %q: %s", tc.reason, err, tc.want, tc.text)
			}
		})
	}
}

// TestKeyThatCannotBeRead resends a request with a key while the Kubernetes API does not respond.
func TestKeyThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := &unreadable{posts: &posts{stored: map[string]*v1alpha1.Post{}}}
	s := service(p.posts, inMemory("acme"))
	s.Posts = p
	in := hello("acme")
	in.IdempotencyKey = "k"
	if _, err := s.CreatePost(t.Context(), caller, in); code(err) != "internal" || !strings.Contains(err.Error(), "created with an Idempotency-Key") || p.creates != 0 {
		t.Errorf("error %v after %d creates, want none, because the post may exist", err, p.creates)
	}
}

// unreadable are posts that cannot be read.
type unreadable struct{ *posts }

func (*unreadable) Get(context.Context, string, string) (*v1alpha1.Post, error) {
	return nil, errors.New("boom")
}
