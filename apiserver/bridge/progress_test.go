// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/posting"
)

// withBudget returns a function that returns a team with a budget for every namespace.
func withBudget(budget v1alpha1.TeamBudget) func(string) *v1alpha1.Team {
	return func(string) *v1alpha1.Team {
		return &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TeamSpec{
			Subscription: v1alpha1.Subscription{State: v1alpha1.SubscriptionActive}, Budget: budget,
		}}
	}
}

// TestPostsInProgress creates a post while another one is being created, in a namespace with a listed post. All three
// have the same size.
func TestPostsInProgress(t *testing.T) {
	t.Parallel()
	made := &posts{stored: map[string]*v1alpha1.Post{}}
	first, err := service(made, inMemory("acme")).CreatePost(t.Context(), caller, hello("acme"))
	if err != nil {
		t.Fatal(err)
	}
	listed := made.stored[first.ID]
	size := posting.Of(listed).Footprint()
	bytes := func(n int64) *apiresource.Quantity { return apiresource.NewQuantity(n, apiresource.BinarySI) }
	for name, tc := range map[string]struct {
		reason string
		budget v1alpha1.TeamBudget
		want   string
	}{
		"Posts":          {"the listed post and the one in progress use all the room", v1alpha1.TeamBudget{Posts: new(int32(2))}, "spec.budget.posts "},
		"PostsFit":       {"the budget has room for three", v1alpha1.TeamBudget{Posts: new(int32(3))}, ""},
		"Bytes":          {"three posts are a byte too large", v1alpha1.TeamBudget{PostBytes: bytes(3*size - 1)}, "spec.budget.postBytes "},
		"BytesFit":       {"the limit is inclusive", v1alpha1.TeamBudget{PostBytes: bytes(3 * size)}, ""},
		"Unfinished":     {"both posts are unpublished", v1alpha1.TeamBudget{UnfinishedPosts: new(int32(2))}, "spec.budget.unfinishedPosts "},
		"UnfinishedFits": {"three may be unpublished", v1alpha1.TeamBudget{UnfinishedPosts: new(int32(3))}, ""},
	} {
		p := &posts{stored: map[string]*v1alpha1.Post{}}
		s := service(p, inMemory("acme"))
		s.Owner = withBudget(tc.budget)
		s.Index.Upsert(caller.Namespace, s.Summarise(listed), 1)
		var second error
		p.creating = func() {
			p.creating = nil
			_, second = s.CreatePost(t.Context(), caller, hello("acme"))
		}
		if _, err := s.CreatePost(t.Context(), caller, hello("acme")); err != nil {
			t.Errorf("%s: the first: %v", name, err)
		}
		if tc.want == "" && second != nil || tc.want != "" && (code(second) != "SUBSCRIPTION_REQUIRED" || !strings.Contains(second.Error(), tc.want)) {
			t.Errorf("%s: %s: error %v, want %q", name, tc.reason, second, tc.want)
		}
	}
}

// TestFailedCreationMakesRoom creates a post after another one that Kubernetes rejected, within a budget of one.
func TestFailedCreationMakesRoom(t *testing.T) {
	t.Parallel()
	p := &posts{stored: map[string]*v1alpha1.Post{}, faults: []fault{{false, apierrors.NewForbidden(resource, "p", nil)}}}
	s := service(p, inMemory("acme"))
	s.Owner = withBudget(v1alpha1.TeamBudget{Posts: new(int32(1))})
	if _, err := s.CreatePost(t.Context(), caller, hello("acme")); code(err) != "internal" {
		t.Errorf("the first: %v", err)
	}
	if _, err := s.CreatePost(t.Context(), caller, hello("acme")); err != nil {
		t.Errorf("the rejected post still counts: %v", err)
	}
}

// uploading calls creating, once, while a file is being registered.
type uploading struct {
	*files

	creating func()
}

func (u *uploading) Create(ctx context.Context, m *v1alpha1.Media) (*v1alpha1.Media, error) {
	if creating := u.creating; creating != nil {
		u.creating = nil
		creating()
	}
	return u.files.Create(ctx, m)
}

// TestFilesInProgress registers a file of five bytes while another one is being registered, in a namespace that waits
// for a third one.
func TestFilesInProgress(t *testing.T) {
	t.Parallel()
	bytes := func(n int64) *apiresource.Quantity { return apiresource.NewQuantity(n, apiresource.BinarySI) }
	for name, tc := range map[string]struct {
		reason string
		budget v1alpha1.TeamBudget
		want   string
	}{
		"Files":    {"two of three files fit", v1alpha1.TeamBudget{PendingFiles: new(int32(2))}, "spec.budget.pendingFiles "},
		"FilesFit": {"the budget has room for three", v1alpha1.TeamBudget{PendingFiles: new(int32(3))}, ""},
		"Bytes":    {"three files are a byte too large", v1alpha1.TeamBudget{PendingFileBytes: bytes(14)}, "spec.budget.pendingFileBytes "},
		"BytesFit": {"the limit is inclusive", v1alpha1.TeamBudget{PendingFileBytes: bytes(15)}, ""},
	} {
		u := &uploading{files: &files{stored: map[string]*v1alpha1.Media{}}}
		s := withFiles(u.files)
		s.Media, s.Owner = u, withBudget(tc.budget)
		s.Pending = func(_ string, names []string) (files, bytes int64, known []bool) {
			return 1, 5, make([]bool, len(names))
		}
		upload := func() error {
			_, err := s.CreateMediaUpload(t.Context(), caller, bridge.CreateMediaUpload{Spec: photo(nil)})
			return err
		}
		var second error
		u.creating = func() { second = upload() }
		if err := upload(); err != nil {
			t.Errorf("%s: the first: %v", name, err)
		}
		if tc.want == "" && second != nil || tc.want != "" && (code(second) != "SUBSCRIPTION_REQUIRED" || !strings.Contains(second.Error(), tc.want)) {
			t.Errorf("%s: %s: error %v, want %q", name, tc.reason, second, tc.want)
		}
	}
}

// TestRoomAfterAnUpload registers a second file within a budget of one, before the watch has reported the first.
func TestRoomAfterAnUpload(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		fault  fault
		want   string
	}{
		"Registered": {"the watch is delayed, and the file exists", fault{}, "SUBSCRIPTION_REQUIRED"},
		"Rejected":   {"Kubernetes has not stored it", fault{false, apierrors.NewForbidden(mediaResource, "m", nil)}, ""},
	} {
		f := &files{stored: map[string]*v1alpha1.Media{}, creates: []fault{tc.fault}}
		s := withFiles(f)
		s.Owner = withBudget(v1alpha1.TeamBudget{PendingFiles: new(int32(1))})
		s.Pending = func(_ string, names []string) (files, bytes int64, known []bool) {
			return 0, 0, make([]bool, len(names))
		}
		in := bridge.CreateMediaUpload{Spec: photo(nil)}
		if _, err := s.CreateMediaUpload(t.Context(), caller, in); (err != nil) != (tc.fault.err != nil) {
			t.Errorf("%s: the first: %v", name, err)
		}
		if _, err := s.CreateMediaUpload(t.Context(), caller, in); code(err) != tc.want {
			t.Errorf("%s: %s: error %v, want %q", name, tc.reason, err, tc.want)
		}
	}
}
