// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/storetest"
)

// away is an archive whose bucket does not respond.
type away struct{}

func (away) Request(ctx context.Context, _ archive.Team, _ string) (archive.Request, error) {
	if _, limited := ctx.Deadline(); !limited {
		return archive.Request{}, errors.New("the bucket must be read with a timeout")
	}
	return archive.Request{}, errors.New("connection refused")
}

// archived is an archive with one post, or an unreadable one.
type archived struct {
	bridge.Archive
	post *v1alpha1.Post
	err  error
}

func (a archived) Post(ctx context.Context, namespace, name string) (*v1alpha1.Post, error) {
	post, err := a.PostIncludingDeleted(ctx, namespace, name)
	if post == nil || !post.Status.Finished {
		return nil, err
	}
	return post, nil
}

func (a archived) PostIncludingDeleted(_ context.Context, _, name string) (*v1alpha1.Post, error) {
	if a.post == nil || a.post.Name != name {
		return nil, a.err
	}
	return a.post, nil
}

// TestKeyOfArchivedPost resends a request whose post has been archived.
func TestKeyOfArchivedPost(t *testing.T) {
	t.Parallel()
	keyed := func(caption string) bridge.CreatePost {
		in := hello("a-x")
		in.IdempotencyKey, in.Spec.Targets[0].Caption = "k", caption
		return in
	}
	p := &posts{stored: map[string]*v1alpha1.Post{}}
	s := service(p, inMemory("a-x"))
	first, err := s.CreatePost(t.Context(), caller, keyed("hi"))
	if err != nil {
		t.Fatal(err)
	}
	left := p.stored[first.ID].DeepCopy()
	left.Status.Phase, left.Status.Finished = v1alpha1.PhasePosted, true
	stopped := p.stored[first.ID].DeepCopy()
	stopped.Status.Phase = v1alpha1.PhaseProcessing
	clear(p.stored)
	for _, tc := range []struct {
		reason, caption, code string
		from                  bridge.Archive
		replayed              bool
		creates               int
		logged                bool
	}{
		{"the same request returns the archived post", "hi", "", archived{post: left}, true, 1, false},
		{"another body with the same key is a client error", "ho", "CONFLICT", archived{post: left}, false, 1, false},
		{"a post that a user stopped by deleting it does not continue", "hi", "CONFLICT", archived{post: stopped}, false, 1, false},
		{"another body with its key is a client error", "ho", "CONFLICT", archived{post: stopped}, false, 1, false},
		{"an unreadable archive does not block requests: the manager looks the post up before it publishes", "hi", "", archived{err: bridge.ErrArchiveAway}, false, 2, true},
	} {
		var log bytes.Buffer
		s.Archive, s.Log = tc.from, slog.New(slog.NewTextHandler(&log, nil))
		again, err := s.CreatePost(t.Context(), caller, keyed(tc.caption))
		if got := code(err); got != tc.code || again.Replayed != tc.replayed || p.creates != tc.creates {
			t.Errorf("%s: %q %v, replayed: %v, %d creates", tc.reason, got, err, again.Replayed, p.creates)
		}
		if logged := strings.Contains(log.String(), "Cannot check whether an Idempotency-Key was used for an archived post"); logged != tc.logged {
			t.Errorf("%s: logged %q", tc.reason, &log)
		}
		if tc.code == "" && again.ID != first.ID {
			t.Errorf("%s: post %s, and the first was %s", tc.reason, again.ID, first.ID)
		}
	}
}

// TestArchivedPostIsReadOnly requests changes to archived posts, including an undecided one.
func TestArchivedPostIsReadOnly(t *testing.T) {
	t.Parallel()
	seen := bridge.Version(olderDraft())
	acts := map[string]func(context.Context, *stage) error{
		"Cancel": func(ctx context.Context, s *stage) error { return s.CancelPost(ctx, person, "p1") },
		"Update": func(ctx context.Context, s *stage) error {
			_, err := s.UpdateDraft(ctx, person, "p1", seen, olderDraft().Spec)
			return err
		},
		"Publish": func(ctx context.Context, s *stage) error {
			spec := olderDraft().Spec
			spec.Targets[0].Caption = "something else"
			_, err := s.Publish(ctx, person, "p1", seen, spec, nil)
			return err
		},
		"Reschedule": func(ctx context.Context, s *stage) error {
			_, err := s.Reschedule(ctx, person, "p1", seen, tomorrow)
			return err
		},
		"Dismiss": func(ctx context.Context, s *stage) error { return s.Dismiss(ctx, person, "p1") },
		"Settle":  func(ctx context.Context, s *stage) error { return s.Settle(ctx, person, "p1", 0, bridge.Verdict{}) },
	}
	left := olderDraft(func(p *v1alpha1.Post) {
		p.ResourceVersion, p.Spec.Draft = "", false
		p.Status.Phase, p.Status.Finished, p.Status.FinishedAt = v1alpha1.PhaseFailed, true, v1alpha1.NewTimePtr(now)
		p.Status.Targets = []v1alpha1.TargetStatus{{
			State: v1alpha1.TargetUndecided, Phase: v1alpha1.PhaseFailed, Attempt: &v1alpha1.Attempt{Number: 1, ID: "a", Outcome: v1alpha1.OutcomeUnknown},
		}}
	})
	for name, act := range acts {
		for reason, tc := range map[string]struct {
			archive archived
			want    string
		}{
			"the post is finished, and remains so":       {archived{post: left}, "CONFLICT"},
			"the post may exist, but cannot be read now": {archived{err: bridge.ErrArchiveAway}, "away"},
			"the post does not exist":                    {archived{}, "NOT_FOUND"},
		} {
			s := staged(olderDraft())
			delete(s.posts.stored, "p1")
			s.Archive = tc.archive
			err := act(t.Context(), s)
			got := code(err)
			if errors.Is(err, bridge.ErrArchiveAway) {
				got = "away"
			}
			if got != tc.want || len(s.posts.stored) != 0 {
				t.Errorf("%s: %v, want %s (%s)", name, err, tc.want, reason)
			}
		}
	}
}

// TestKeyOfDeletedObject resends a request whose object was deleted by another client, with the manager's record of it in
// the real store.
func TestKeyOfDeletedObject(t *testing.T) {
	if testing.Short() {
		t.Skip("the test starts a store")
	}
	bucket, err := store.New(storetest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	kept := archive.New(bucket)
	keyed := func(caption string) bridge.CreatePost {
		in := hello("a-x")
		in.IdempotencyKey, in.Spec.Targets[0].Caption = "k", caption
		return in
	}
	form := keyed("hi")
	form.IdempotencyKey = "form"
	upload := func(size int64) bridge.CreateMediaUpload {
		return bridge.CreateMediaUpload{IdempotencyKey: "k", Spec: v1alpha1.MediaSpec{FileName: "a.png", MimeType: v1alpha1.MimePNG, SizeBytes: size}}
	}
	team := archive.Team{Namespace: caller.Namespace, Name: (owner{}).Owner(caller.Namespace).Name}
	keep := func(name string, annotations map[string]string) {
		t.Helper()
		if err := kept.PutRequest(t.Context(), team, name, archive.Request{UID: "u", Fingerprint: annotations[v1alpha1.RequestAnnotation]}); err != nil {
			t.Fatal(err)
		}
	}

	p := &posts{stored: map[string]*v1alpha1.Post{}}
	s := service(p, inMemory("a-x"))
	s.Requests = kept
	first, err := s.CreatePost(t.Context(), caller, keyed("hi"))
	if err != nil {
		t.Fatal(err)
	}
	for _, post := range p.stored {
		keep(post.Name, post.Annotations)
	}
	clear(p.stored)
	for _, tc := range []struct {
		reason     string
		in         bridge.CreatePost
		requests   bridge.Requests
		code, says string
		creates    int
	}{
		{"the request takes effect once, although a user deleted its post", keyed("hi"), kept, "CONFLICT", "was deleted before it was published", 1},
		{"another body with the same key is a client error", keyed("ho"), kept, "CONFLICT", "was used for another request", 1},
		{"another key is another post", form, kept, "", "", 2},
		{"an unavailable bucket does not block requests: the manager looks the post up before it publishes", keyed("hi"), away{}, "", "", 3},
	} {
		s.Requests = tc.requests
		made, err := s.CreatePost(t.Context(), caller, tc.in)
		if got := code(err); got != tc.code || p.creates != tc.creates || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %q %v, %d creates; want %q %q and %d", tc.reason, got, err, p.creates, tc.code, tc.says, tc.creates)
		}
		if err != nil && !strings.Contains(err.Error(), first.ID) {
			t.Errorf("%s: %v names another post than %s", tc.reason, err, first.ID)
		}
		if tc.code == "" {
			delete(p.stored, made.ID)
		}
	}

	f := &files{stored: map[string]*v1alpha1.Media{}}
	s = withFiles(f)
	s.Requests = kept
	registered, err := s.CreateMediaUpload(t.Context(), caller, upload(10))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range f.stored {
		keep(m.Name, m.Annotations)
	}
	clear(f.stored)
	for _, tc := range []struct {
		reason string
		size   int64
		code   string
	}{
		{"another file with the same key is a client error", 11, "CONFLICT"},
		{"the same file gets its id and a new upload URL", 10, ""},
	} {
		again, err := s.CreateMediaUpload(t.Context(), caller, upload(tc.size))
		if got := code(err); got != tc.code || tc.code == "" && (again.ID != registered.ID || again.UploadURL == "") {
			t.Errorf("%s: %q %v, %+v; the first was %s", tc.reason, got, err, again, registered.ID)
		}
	}
}
