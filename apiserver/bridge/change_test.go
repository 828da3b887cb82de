// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/posting/plan"
)

// olderDraft returns a draft that was created in an earlier month.
func olderDraft(edits ...func(*v1alpha1.Post)) *v1alpha1.Post {
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: person.Namespace, Name: "p1", UID: "u1", Generation: 1, ResourceVersion: "7",
			CreationTimestamp: metav1.NewTime(now.AddDate(0, -1, -9)),
		},
		Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText, Draft: true, OnUnknownOutcome: v1alpha1.OnUnknownFail,
			Targets: []v1alpha1.PostTarget{target("acme")},
		},
	}
	for _, edit := range edits {
		edit(post)
	}
	return post
}

func scheduledFor(at time.Time) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) { p.Spec.Draft, p.Spec.ScheduledAt = false, v1alpha1.NewTimePtr(at) }
}

func claimed(p *v1alpha1.Post) {
	p.Status.Targets = []v1alpha1.TargetStatus{{Attempt: &v1alpha1.Attempt{Number: 1, ID: "a"}}}
}

// saying returns a spec with the same text for each connection.
func saying(words string, connections ...string) v1alpha1.PostSpec {
	spec := v1alpha1.PostSpec{Category: v1alpha1.CategoryText}
	for _, name := range connections {
		spec.Targets = append(spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}, Caption: words})
	}
	return spec
}

var (
	tomorrow  = now.Add(24 * time.Hour)
	nextMonth = now.AddDate(0, 1, 0)
)

// stage is a service of a starter team with one post.
type stage struct {
	*bridge.Service
	posts  *posts
	counts *counts
	events *events
}

func staged(post *v1alpha1.Post) *stage {
	s := &stage{posts: &posts{stored: map[string]*v1alpha1.Post{post.Name: post}}, counts: newCounts(), events: &events{}}
	s.Service = starterService(s.posts, s.counts)
	s.Events = s.events
	return s
}

func (s *stage) post() *v1alpha1.Post { return s.posts.stored["p1"] }

// TestChange verifies that a change is stored completely if all rules hold, and not at all otherwise.
func TestChange(t *testing.T) {
	t.Parallel()
	seen := bridge.Version(olderDraft())
	publish := func(spec v1alpha1.PostSpec, at *time.Time) func(context.Context, *stage) error {
		return func(ctx context.Context, s *stage) error {
			_, err := s.Publish(ctx, person, "p1", seen, spec, at)
			return err
		}
	}
	update := func(spec v1alpha1.PostSpec) func(context.Context, *stage) error {
		return func(ctx context.Context, s *stage) error {
			_, err := s.UpdateDraft(ctx, person, "p1", seen, spec)
			return err
		}
	}
	edit := func(spec v1alpha1.PostSpec, at time.Time) func(context.Context, *stage) error {
		return func(ctx context.Context, s *stage) error {
			spec.ScheduledAt = v1alpha1.NewTimePtr(at)
			_, err := s.EditScheduled(ctx, person, "p1", seen, spec)
			return err
		}
	}
	reschedule := func(at time.Time) func(context.Context, *stage) error {
		return func(ctx context.Context, s *stage) error {
			_, err := s.Reschedule(ctx, person, "p1", seen, at)
			return err
		}
	}
	move := func(from, at time.Time) func(context.Context, *stage) error {
		return func(ctx context.Context, s *stage) error {
			_, err := s.Move(ctx, person, "p1", from, at)
			return err
		}
	}
	notReady := func(s *stage) {
		s.Readiness = func(context.Context, *v1alpha1.Connection) readiness.Result {
			return readiness.Result{State: readiness.Reconnect, Message: "gone"}
		}
	}
	asDraft := saying("New", "acme")
	asDraft.Draft = true
	inbox := saying("New", "acme", "box")
	inbox.Targets[1].TikTok = &v1alpha1.TikTokOptions{Draft: true}
	other := saying("", "acme")
	other.Category, other.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "Hello"}, {Caption: "again"}}}
	for name, tc := range map[string]struct {
		reason  string
		post    *v1alpha1.Post
		change  func(context.Context, *stage) error
		prepare func(*stage)
		want    string
		message string
		act     bridge.Act // "" if nothing is written
	}{
		"DraftEdited":          {"a draft remains a draft", olderDraft(), update(saying("", "acme")), nil, "", "", bridge.ActEdited},
		"DraftNotReady":        {"connections are not checked for drafts", olderDraft(), update(saying("New", "acme")), notReady, "", "", bridge.ActEdited},
		"DraftUnchanged":       {"the stored draft is equal", olderDraft(), update(saying("Hello", "acme")), nil, "", "", ""},
		"DraftOfNobody":        {"rules apply to drafts too", olderDraft(), update(saying("New", "nobody")), nil, "VALIDATION_ERROR", "targets[0].connection_id: ", ""},
		"NotADraft":            {"a scheduled post never becomes a draft again", olderDraft(scheduledFor(tomorrow)), update(saying("New", "acme")), nil, "CONFLICT", "is now scheduled, and this is only possible for a draft", ""},
		"Published":            {"the draft is published", olderDraft(), publish(saying("New", "acme"), nil), nil, "", "", bridge.ActPublished},
		"PublishedAsItIs":      {"the form equals the draft", olderDraft(), publish(saying("Hello", "acme"), nil), nil, "", "", bridge.ActPublished},
		"Scheduled":            {"the post is published later", olderDraft(), publish(saying("New", "acme"), &tomorrow), nil, "", "", bridge.ActScheduled},
		"ScheduledBefore":      {"a post cannot be scheduled in the past", olderDraft(), publish(saying("New", "acme"), new(now)), nil, "VALIDATION_ERROR", "scheduled_at: must be in the future", ""},
		"CaptionMissing":       {"a draft may lack fields that a post needs", olderDraft(), publish(saying("", "acme"), nil), nil, "VALIDATION_ERROR", "targets[0].caption: ", ""},
		"NotReady":             {"its accounts must be ready", olderDraft(), publish(saying("New", "acme"), nil), notReady, "POSTING_READINESS_RECONNECT_REQUIRED", "", ""},
		"ScheduledNow":         {"the post is published immediately instead", olderDraft(scheduledFor(tomorrow)), publish(saying("Hello", "acme"), nil), nil, "", "", bridge.ActPublished},
		"ScheduledNotReady":    {"the account may become ready until then, but the user gets a warning", olderDraft(), publish(saying("New", "acme"), &tomorrow), notReady, "POSTING_READINESS_RECONNECT_REQUIRED", "", ""},
		"ScheduledNowNotReady": {"an immediate post needs a ready account", olderDraft(scheduledFor(tomorrow)), publish(saying("Hello", "acme"), nil), notReady, "POSTING_READINESS_RECONNECT_REQUIRED", "", ""},
		"EditedAsDraft":        {"a scheduled post stays scheduled, whatever the form contains", olderDraft(scheduledFor(tomorrow)), edit(asDraft, tomorrow), nil, "", "", bridge.ActEdited},
		"OverInbox":            {"the other reservations are released", olderDraft(), publish(inbox, nil), func(s *stage) { s.counts.full = v1alpha1.ResourceTikTokDrafts }, "VALIDATION_ERROR", "tiktok_draft", ""},
		"DraftOtherCategory":   {"a text grows into a thread", olderDraft(), publish(other, nil), nil, "", "", bridge.ActPublished},
		"OtherCategory":        {"a scheduled post was checked under its category", olderDraft(scheduledFor(tomorrow)), edit(other, tomorrow), nil, "VALIDATION_ERROR", "category: ", ""},
		"Edited":               {"delivery has not started", olderDraft(scheduledFor(tomorrow)), edit(saying("New", "acme"), tomorrow), nil, "", "", bridge.ActEdited},
		"EditedNotReady":       {"the manager already monitors the account", olderDraft(scheduledFor(tomorrow)), edit(saying("New", "acme"), tomorrow), notReady, "", "", bridge.ActEdited},
		"EditedNewNotReady":    {"a new account is checked", olderDraft(scheduledFor(tomorrow)), edit(saying("New", "acme", "beta"), tomorrow), notReady, "POSTING_READINESS_RECONNECT_REQUIRED", `"beta"`, ""},
		"EditedDraft":          {"drafts are updated by another operation", olderDraft(), edit(saying("New", "acme"), tomorrow), nil, "CONFLICT", "only possible for a scheduled post", ""},
		"Rescheduled":          {"the post moves to another day", olderDraft(scheduledFor(tomorrow)), reschedule(nextMonth), nil, "", "", bridge.ActRescheduled},
		"RescheduledSame":      {"the draft moves within its own day", olderDraft(scheduledFor(tomorrow)), reschedule(tomorrow), nil, "", "", ""},
		"RescheduledBroken": {"a post that waits for a correction can be rescheduled", olderDraft(scheduledFor(tomorrow), func(p *v1alpha1.Post) {
			p.Spec.Targets = []v1alpha1.PostTarget{target("nobody")}
		}), reschedule(nextMonth), notReady, "", "", bridge.ActRescheduled},
		"RescheduledPast":  {"a post cannot be scheduled in the past", olderDraft(scheduledFor(tomorrow)), reschedule(now), nil, "VALIDATION_ERROR", "scheduled_at: ", ""},
		"RescheduledLast":  {"its year is not supported", olderDraft(scheduledFor(tomorrow)), reschedule(time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)), nil, "VALIDATION_ERROR", "after the year 2999", ""},
		"RescheduledDraft": {"a misplaced drag must not publish a draft", olderDraft(), reschedule(tomorrow), nil, "CONFLICT", "only possible for a scheduled post", ""},
		"Moved":            {"a calendar only depends on the post's time", olderDraft(scheduledFor(tomorrow), func(p *v1alpha1.Post) { p.Generation = 9 }), move(tomorrow, nextMonth), nil, "", "", bridge.ActRescheduled},
		"MovedMeanwhile":   {"another user moved it", olderDraft(scheduledFor(tomorrow)), move(now, nextMonth), nil, "CONFLICT", "has changed since", ""},
		"MovedDraft":       {"a draft does not have a time", olderDraft(), move(tomorrow, nextMonth), nil, "CONFLICT", "only possible for a scheduled post", ""},
		"Claimed":          {"a call may be in progress", olderDraft(scheduledFor(tomorrow), claimed), reschedule(nextMonth), nil, "CONFLICT", "is being delivered", ""},
		"Due": {"its reason for waiting is recorded, so it is processing", olderDraft(scheduledFor(tomorrow), func(p *v1alpha1.Post) {
			p.Status.Targets = []v1alpha1.TargetStatus{{TryUntil: v1alpha1.NewTimePtr(tomorrow)}}
		}), reschedule(nextMonth), nil, "CONFLICT", "is being delivered", ""},
		"Cancelled": {"the draft stays cancelled", olderDraft(func(p *v1alpha1.Post) { p.Spec.Cancelled = true }), publish(saying("Hello", "acme"), nil), nil, "CONFLICT", "is now cancelled", ""},
		"CancelledAndAppliedAgain": {"its spec contains the user's request, and it stays cancelled", olderDraft(scheduledFor(tomorrow), func(p *v1alpha1.Post) {
			p.Status.CancelledAt = v1alpha1.NewTimePtr(now)
		}), reschedule(tomorrow), nil, "CONFLICT", "is now cancelled", ""},
		"Leaving": {"the draft is being deleted", olderDraft(func(p *v1alpha1.Post) { p.DeletionTimestamp = new(metav1.NewTime(now)) }), publish(saying("Hello", "acme"), nil), nil, "NOT_FOUND", "", ""},
		"ChangedMeanwhile": {"another user's changes are kept", olderDraft(func(p *v1alpha1.Post) {
			p.Generation, p.Annotations = 2, map[string]string{v1alpha1.LastAuthorAnnotation: "oidc:ada"}
		}), update(saying("New", "acme")), nil, "CONFLICT", "has changed since you opened it, last by oidc:ada; your change was not stored", ""},
		"MadeAnew":     {"another post has its name now", olderDraft(func(p *v1alpha1.Post) { p.UID = "u2" }), update(saying("New", "acme")), nil, "CONFLICT", "has changed since", ""},
		"StatusOnly":   {"status updates are not changes", olderDraft(func(p *v1alpha1.Post) { p.ResourceVersion = "8" }), update(saying("New", "acme")), nil, "", "", bridge.ActEdited},
		"Unsubscribed": {"the trial has ended", olderDraft(), update(saying("New", "acme")), func(s *stage) { s.Owner = func(string) *v1alpha1.Team { return nil } }, "SUBSCRIPTION_REQUIRED", `namespace "team-a"`, ""},
		"OverPlan":     {"another request reached the limit", olderDraft(), publish(saying("New", "acme"), nil), func(s *stage) { s.counts.full = v1alpha1.ResourceXPosts }, "SUBSCRIPTION_REQUIRED", "of December 2026", ""},
		"NoSuchPost":   {"the draft was deleted", olderDraft(), publish(saying("New", "acme"), nil), func(s *stage) { delete(s.posts.stored, "p1") }, "NOT_FOUND", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := tc.post.DeepCopy()
			s := staged(tc.post)
			if tc.prepare != nil {
				tc.prepare(s)
			}
			err := tc.change(t.Context(), s)
			if code(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.message) {
				t.Fatalf("%s: error %v, want %q with %q", tc.reason, err, tc.want, tc.message)
			}
			if refused, ok := errors.AsType[*bridge.Error](err); ok && strings.Contains(refused.Message, ", last by ") != (refused.ChangedBy != "") {
				t.Errorf("%s: changed by %q", tc.reason, refused.ChangedBy)
			}
			if tc.act == "" {
				if post := s.post(); post != nil && !cmp.Equal(before, post) || s.posts.updates > 0 || s.events.written != nil {
					t.Errorf("%s: the request changed a post: %+v, %v", tc.reason, post, s.events.written)
				}
				if held := s.counts.usageByTarget(t, plan.XPosts(now)); held != nil {
					t.Errorf("%s: the reservations %v remain", tc.reason, held)
				}
				return
			}
			if diff := cmp.Diff([]string{string(tc.act) + " Post/p1: by herald:link in the web application"}, s.events.written); diff != "" {
				t.Errorf("%s: its trail:\n%s", tc.reason, diff)
			}
			if got := s.post().Annotations[v1alpha1.LastAuthorAnnotation]; got != person.Author {
				t.Errorf("%s: it was last written by %q", tc.reason, got)
			}
			if s.posts.updates != 1 {
				t.Errorf("%s: %d writes", tc.reason, s.posts.updates)
			}
		})
	}
}

// TestPublishStoresTheForm verifies that the published content is the form's.
func TestPublishStoresTheForm(t *testing.T) {
	t.Parallel()
	s := staged(olderDraft())
	spec := saying("New", "acme", "beta")
	spec.Cancelled, spec.Draft = true, true // a form cannot set these
	got, err := s.Publish(t.Context(), person, "p1", bridge.Version(olderDraft()), spec, &tomorrow)
	if err != nil {
		t.Fatal(err)
	}
	want := *spec.DeepCopy()
	want.Cancelled, want.Draft = false, false
	want.ScheduledAt, want.OnUnknownOutcome = v1alpha1.NewTimePtr(tomorrow), v1alpha1.OnUnknownFail
	if diff := cmp.Diff(want, s.post().Spec); diff != "" {
		t.Errorf("stored is -want +got:\n%s", diff)
	}
	if bridge.Version(got) != bridge.Version(s.post()) || bridge.Version(got) == bridge.Version(olderDraft()) {
		t.Errorf("version %s, stored %s: the next change needs the new one", bridge.Version(got), bridge.Version(s.post()))
	}
	listed := pageOf(t, s.Service, person, postindex.Query{Limit: 10})
	if listed.Total != 1 || listed.Posts[0].Status != v1alpha1.PhaseScheduled || !listed.Posts[0].DisplayAt.Equal(tomorrow) {
		t.Errorf("the list does not show the change: %+v", listed)
	}
}

// TestPublishOnce verifies that, regardless of write errors and concurrent changes, the post is published at most once,
// and is counted if and only if it may be published.
func TestPublishOnce(t *testing.T) {
	t.Parallel()
	lost := errors.New("read: connection reset by peer")
	conflict := fault{err: apierrors.NewConflict(resource, "p1", errors.New("written"))}
	frozen := fault{err: apierrors.NewInvalid(schema.GroupKind{Kind: "Post"}, "p1", field.ErrorList{field.Forbidden(nil, "the spec is frozen")})}
	invalid := fault{err: apierrors.NewInvalid(schema.GroupKind{Kind: "Post"}, "p1", field.ErrorList{
		field.Invalid(field.NewPath("spec", "targets").Index(0).Child("caption"), "x", "no"),
	})}
	once := func(do func(*posts)) func(*posts) {
		done := false
		return func(p *posts) {
			if !done {
				done = true
				do(p)
			}
		}
	}
	write := func(edit func(*v1alpha1.Post)) func(*posts) {
		return once(func(p *posts) {
			post := p.stored["p1"].DeepCopy()
			edit(post)
			p.put(post)
		})
	}
	publishedBy := func(words string) func(*posts) {
		return write(func(p *v1alpha1.Post) {
			p.Spec.Draft, p.Spec.Targets = false, saying(words, "acme").Targets
		})
	}
	held := map[int]int{0: 1}
	for name, tc := range map[string]struct {
		reason  string
		faults  []fault
		between func(*posts)
		want    string
		message string
		draft   bool // the post remains a draft
		held    map[int]int
		events  int
	}{
		"Plain":         {"the update succeeds", nil, nil, "", "", false, held, 1},
		"Landed":        {"the response was lost", []fault{{true, lost}}, nil, "", "", false, held, 1},
		"NotLanded":     {"the request was lost", []fault{{false, lost}}, nil, "", "", false, held, 1},
		"LostTwice":     {"the request and its retry were lost", []fault{{false, lost}, {true, lost}}, nil, "", "", false, held, 1},
		"StaysLost":     {"the outcome is unknown, so the reservation remains until the manager looks it up", []fault{{false, lost}, {false, lost}, {false, lost}, {false, lost}, {false, lost}}, nil, "maybe", "", true, held, 0},
		"StatusBetween": {"the manager accepted the draft meanwhile", nil, write(func(p *v1alpha1.Post) { p.Status.ObservedGeneration = 1 }), "", "", false, held, 1},
		"Twice":         {"a second click published the same content first", nil, publishedBy("New"), "", "", false, nil, 0},
		"OtherBetween":  {"another user published other content", nil, publishedBy("Other"), "CONFLICT", "is being delivered", false, nil, 0},
		"EditedBetween": {"another user changed the draft", nil, write(func(p *v1alpha1.Post) { p.Spec.Targets[0].Caption = "Other" }), "CONFLICT", "has changed since", true, nil, 0},
		"CancelBetween": {"another user cancelled it", nil, write(func(p *v1alpha1.Post) { p.Spec.Cancelled = true }), "CONFLICT", "is now cancelled", true, nil, 0},
		"AlwaysBetween": {"each update conflicts", []fault{conflict, conflict, conflict, conflict, conflict}, nil, "CONFLICT", "at the same time", true, nil, 0},
		"Frozen":        {"the CRD reports that delivery has started", []fault{frozen}, write(claimed), "CONFLICT", "is being delivered", true, nil, 0},
		"Invalid":       {"the CRD rejects it", []fault{invalid}, nil, "VALIDATION_ERROR", "targets[0].caption: ", true, nil, 0},
		"TooLarge":      {"the update is too large", []fault{{err: apierrors.NewRequestEntityTooLargeError("limit")}}, nil, "VALIDATION_ERROR", "too large", true, nil, 0},
		"Forbidden":     {"Herald lacks the permission", []fault{{err: apierrors.NewForbidden(resource, "p1", lost)}}, nil, "internal", "", true, nil, 0},
		"Deleted":       {"the draft was deleted", nil, once(func(p *posts) { delete(p.stored, "p1") }), "NOT_FOUND", "", true, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := staged(olderDraft())
			s.posts.faults, s.posts.between = tc.faults, tc.between
			spec := saying("New", "acme")
			_, err := s.Publish(t.Context(), person, "p1", bridge.Version(olderDraft()), spec, nil)
			got := code(err)
			if errors.Is(err, bridge.ErrMaybeChanged) {
				got = "maybe"
			}
			if got != tc.want || err != nil && !strings.Contains(err.Error(), tc.message) {
				t.Fatalf("%s: error %v, want %q with %q", tc.reason, err, tc.want, tc.message)
			}
			if post := s.post(); post != nil && post.Spec.Draft != tc.draft {
				t.Errorf("%s: draft is %v", tc.reason, post.Spec.Draft)
			}
			if diff := cmp.Diff(tc.held, s.counts.usageByTarget(t, plan.XPosts(now))); diff != "" {
				t.Errorf("%s: usage of this month -want +got:\n%s", tc.reason, diff)
			}
			if len(s.events.written) != tc.events {
				t.Errorf("%s: its trail is %v", tc.reason, s.events.written)
			}
			if err != nil {
				return
			}
			updates := s.posts.updates
			if _, err := s.Publish(t.Context(), person, "p1", bridge.Version(olderDraft()), spec, nil); err != nil || s.posts.updates != updates {
				t.Errorf("%s: a repeated request returned %v after %d additional writes", tc.reason, err, s.posts.updates-updates)
			}
		})
	}
}

// TestCountFollows verifies that usage moves with a post to another month, and changes with an edit.
func TestCountFollows(t *testing.T) {
	t.Parallel()
	december, january := plan.XPosts(now), plan.XPosts(nextMonth)
	s := staged(olderDraft())
	seen := func() string { return bridge.Version(s.post()) }
	for _, step := range []struct {
		reason            string
		do                func() error
		december, january map[int]int
	}{
		{"a draft does not reserve", func() error {
			_, err := s.UpdateDraft(t.Context(), person, "p1", seen(), saying("New", "acme", "beta"))
			return err
		}, nil, nil},
		{"a scheduled post reserves once per account", func() error {
			_, err := s.Publish(t.Context(), person, "p1", seen(), saying("New", "acme", "beta"), &tomorrow)
			return err
		}, map[int]int{0: 1, 1: 1}, nil},
		{"another day of the same month keeps the reservations", func() error {
			_, err := s.Reschedule(t.Context(), person, "p1", seen(), tomorrow.Add(48*time.Hour))
			return err
		}, map[int]int{0: 1, 1: 1}, nil},
		{"another month needs new reservations", func() error {
			_, err := s.Reschedule(t.Context(), person, "p1", seen(), nextMonth)
			return err
		}, nil, map[int]int{0: 1, 1: 1}},
		{"a removed account releases its reservation", func() error {
			spec := saying("New", "acme")
			spec.ScheduledAt = v1alpha1.NewTimePtr(nextMonth)
			_, err := s.EditScheduled(t.Context(), person, "p1", seen(), spec)
			return err
		}, nil, map[int]int{0: 1}},
		{"an immediate post counts in the present month, although it was created in another", func() error {
			_, err := s.Publish(t.Context(), person, "p1", seen(), saying("New", "acme"), nil)
			return err
		}, map[int]int{0: 1}, nil},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if diff := cmp.Diff(step.december, s.counts.usageByTarget(t, december)); diff != "" {
			t.Errorf("%s: December -want +got:\n%s", step.reason, diff)
		}
		if diff := cmp.Diff(step.january, s.counts.usageByTarget(t, january)); diff != "" {
			t.Errorf("%s: January -want +got:\n%s", step.reason, diff)
		}
	}
}

// TestPublishTwiceAtOnce publishes a draft through two requests; the second runs completely between the first one's
// read and write.
func TestPublishTwiceAtOnce(t *testing.T) {
	t.Parallel()
	s := staged(olderDraft())
	seen, spec := bridge.Version(olderDraft()), saying("New", "acme")
	s.posts.between = func(p *posts) {
		p.between = nil
		if _, err := s.Publish(t.Context(), person, "p1", seen, spec, nil); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Publish(t.Context(), person, "p1", seen, spec, nil); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[int]int{0: 1}, s.counts.usageByTarget(t, plan.XPosts(now))); diff != "" {
		t.Errorf("the second request released the first one's reservations:\n%s", diff)
	}
	if len(s.events.written) != 1 || s.post().Generation != 2 {
		t.Errorf("the post was published %d times: %v", s.post().Generation-1, s.events.written)
	}
}

func TestChangeStopsAfterDisconnect(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	s := staged(olderDraft())
	s.posts.faults = []fault{{false, context.Canceled}}
	s.posts.between = func(*posts) { leave() }
	if _, err := s.Publish(ctx, person, "p1", bridge.Version(olderDraft()), saying("New", "acme"), nil); !errors.Is(err, bridge.ErrMaybeChanged) || s.posts.updates != 1 {
		t.Errorf("error %v after %d writes, want an uncertain result after 1", err, s.posts.updates)
	}
}

// TestPublishVerifiesFiles verifies that a draft's files are checked when it is published, as a new post's are: a
// recent upload is accepted, a missing one is not.
func TestPublishVerifiesFiles(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		found  v1alpha1.MediaPhase
		err    error
		want   string
	}{
		"Uploaded": {"its upload ended after the draft was saved", v1alpha1.MediaUploaded, nil, ""},
		"Rejected": {"the file does not match its declaration", v1alpha1.MediaRejected, nil, "VALIDATION_ERROR"},
		"Missing":  {"the file was not uploaded", "", store.ErrNotFound, "VALIDATION_ERROR"},
		"Away":     {"the store is unavailable", "", errors.New("boom"), "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, f := checkService()
			draft := olderDraft(func(p *v1alpha1.Post) {
				p.Spec.Category = v1alpha1.CategoryImage
				p.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "fresh"}}}
				p.Spec.Targets = saying("a", "x").Targets
			})
			p := &posts{stored: map[string]*v1alpha1.Post{"p1": draft.DeepCopy()}}
			s.Posts, s.Quota = p, newCounts()
			s.Verify = func(context.Context, *v1alpha1.Media) (v1alpha1.MediaStatus, error) {
				return v1alpha1.MediaStatus{Phase: tc.found}, tc.err
			}
			_, err := s.Publish(t.Context(), person, "p1", bridge.Version(draft), draft.Spec, nil)
			if code(err) != tc.want {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			if p.stored["p1"].Spec.Draft != (tc.want != "") {
				t.Errorf("%s: draft is %v", tc.reason, p.stored["p1"].Spec.Draft)
			}
			if tc.want == "" && f.stored["fresh"].Status.Phase != v1alpha1.MediaUploaded {
				t.Errorf("%s: the file's state was not recorded", tc.reason)
			}
		})
	}
}
