// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/postindex"
)

// shelf is an archive with one page of posts, or an error.
type shelf struct {
	bridge.Archive
	page []postindex.Summary
	err  error
}

func (a *shelf) List(context.Context, string, postindex.Query) (page []postindex.Summary, total int, err error) {
	return a.page, 3, a.err
}

// TestListWithArchive verifies that a list includes the archived posts, and the error if they cannot be read.
func TestListWithArchive(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
		says   string
	}{
		"Read":  {"the archive contains the page", nil, "", ""},
		"Away":  {"the client can retry", bridge.ErrArchiveAway, "INTERNAL_ERROR", "try again in half a minute"},
		"Error": {"other errors are Herald's own", boom, "internal", "list posts: boom"},
	} {
		s := service(&posts{}, inMemory("acme"))
		s.Archive = &shelf{page: []postindex.Summary{{ID: "old"}}, err: tc.err}
		page, err := s.ListPosts(t.Context(), caller, postindex.Query{Page: 1, Limit: 2})
		if code(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.says) || tc.err != nil && !errors.Is(err, tc.err) {
			t.Errorf("%s: %s: error %v, want %q with %q", name, tc.reason, err, tc.want, tc.says)
		}
		if err == nil && (len(page.Posts) != 1 || page.Posts[0].ID != "old" || page.Total != 3 || !page.HasNext) {
			t.Errorf("%s: %s: %+v", name, tc.reason, page)
		}
	}
}

// undecided returns an archived post whose outcome is unknown, with annotations.
func undecided(annotations map[string]string) *v1alpha1.Post {
	return olderDraft(func(p *v1alpha1.Post) {
		p.ResourceVersion, p.Spec.Draft, p.Annotations = "", false, annotations
		p.Status.Phase, p.Status.Finished = v1alpha1.PhaseFailed, true
		p.Status.Targets = []v1alpha1.TargetStatus{{
			State: v1alpha1.TargetUndecided, Phase: v1alpha1.PhaseFailed, Attempt: &v1alpha1.Attempt{Number: 1, ID: "a", Outcome: v1alpha1.OutcomeUnknown},
		}}
	})
}

// TestSettleArchived verifies that a verdict on an archived post is rejected, unless it is already recorded.
func TestSettleArchived(t *testing.T) {
	t.Parallel()
	settle := func(s *stage) error { return s.Settle(t.Context(), person, "p1", 0, bridge.Verdict{}) }
	list := func(s *stage) error { return s.ListCandidates(t.Context(), person, "p1") }
	for name, tc := range map[string]struct {
		reason      string
		annotations map[string]string
		act         func(*stage) error
		want        string
	}{
		"Verdict":  {"the archived post cannot be changed", nil, settle, "post p1 is archived and can no longer be changed"},
		"Repeated": {"the answer was recorded before the post was archived", map[string]string{v1alpha1.SettleAnnotation: "0=not-sent"}, settle, ""},
		"List":     {"candidates are no longer listed", nil, list, "post p1 is archived and can no longer be changed"},
		"Listed":   {"the list was requested before", map[string]string{v1alpha1.ListCandidatesAnnotation: "before"}, list, ""},
	} {
		s := staged(olderDraft())
		delete(s.posts.stored, "p1")
		s.Archive = archived{post: undecided(tc.annotations)}
		err := tc.act(s)
		if (err == nil) != (tc.want == "") || err != nil && (code(err) != "CONFLICT" || !strings.Contains(err.Error(), tc.want)) || s.posts.updates != 0 {
			t.Errorf("%s: %s: error %v after %d writes, want %q", name, tc.reason, err, s.posts.updates, tc.want)
		}
	}
}

// TestArchivedReadsAreCharged verifies that a post that is not in the cluster costs another request.
func TestArchivedReadsAreCharged(t *testing.T) {
	t.Parallel()
	s := service(&posts{stored: map[string]*v1alpha1.Post{}}, inMemory("acme"))
	s.Archive = archived{post: undecided(nil)}
	ctx, meter := limits.WithMeter(t.Context())
	if _, err := s.GetPost(ctx, caller, "p1"); err != nil || meter.Requests() != 1 {
		t.Errorf("error %v, costs %d more requests, want 1", err, meter.Requests())
	}
}

// TestUnknownID verifies that a message quotes an id up to the length of the longest name in Kubernetes.
func TestUnknownID(t *testing.T) {
	t.Parallel()
	s := service(&posts{stored: map[string]*v1alpha1.Post{}}, inMemory("acme"))
	longest := strings.Repeat("a", 253)
	for id, want := range map[string]string{
		longest:             longest,
		longest + "b":       longest + "…",
		longest[:252] + "ä": longest[:252] + "…", // no letter is cut in two
	} {
		_, err := s.GetPost(t.Context(), caller, id)
		if diff := cmp.Diff(`this team has no post "`+want+`"`, err.Error()); diff != "" {
			t.Errorf("an id of %d bytes: -want +got\n%s", len(id), diff)
		}
	}
}
