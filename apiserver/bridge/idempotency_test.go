// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

func TestIdempotencyKey(t *testing.T) {
	keyed := func(key, caption string) bridge.CreatePost {
		in := hello("a-x")
		in.IdempotencyKey, in.Spec.Targets[0].Caption = key, caption
		return in
	}
	other := bridge.Caller{Namespace: "team-b", Key: "k"}
	for _, tt := range []struct {
		name     string
		second   bridge.CreatePost
		by       bridge.Caller
		between  func(*posts)
		wantCode string
		same     bool
		replayed bool // the second response has Replayed
		creates  int
		faults   []fault
		reason   string
	}{
		{"a repeated request", keyed("k", "hi"), caller, nil, "", true, true, 1, nil, "the existing post is returned"},
		{"repeated after its scheduled time", keyed("k", "hi"), caller, func(p *posts) {
			for _, post := range p.stored {
				post.Spec.ScheduledAt = v1alpha1.NewTimePtr(now.Add(-time.Hour))
			}
		}, "", true, true, 1, nil, "the existing post is not validated again"},
		{"another body", keyed("k", "ho"), caller, nil, "CONFLICT", false, false, 1, nil, "a key belongs to one request"},
		{"another key", keyed("l", "hi"), caller, nil, "", false, false, 2, nil, "the client wants two posts"},
		{"no key", keyed("", "hi"), caller, nil, "", false, false, 2, nil, "without a key each request is a post"},
		{"another team", keyed("k", "hi"), other, nil, "", false, false, 2, nil, "keys belong to a team"},
		{"deleted meanwhile", keyed("k", "hi"), caller, func(p *posts) { clear(p.stored) }, "", true, false, 2, nil, "without a bucket, there is no record of the key after its post was deleted"},
		{"the first response was lost", keyed("k", "hi"), caller, nil, "", true, true, 2, []fault{{lands: true, err: apierrors.NewTimeoutError("late", 1)}}, "the name identifies repeated requests"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &posts{stored: map[string]*v1alpha1.Post{}, faults: tt.faults}
			s := service(p, inMemory("a-x"))
			first, err := s.CreatePost(t.Context(), caller, keyed("k", "hi"))
			if err != nil {
				t.Fatal(err)
			}
			if first.Replayed {
				t.Errorf("%s: the first response is marked as a repetition of post %s", tt.reason, first.ID)
			}
			if tt.between != nil {
				tt.between(p)
			}
			second, err := s.CreatePost(t.Context(), tt.by, tt.second)
			if got := code(err); got != tt.wantCode {
				t.Fatalf("%s: got %q %v, want %q", tt.reason, got, err, tt.wantCode)
			}
			if tt.wantCode == "" && (first.ID == second.ID) != tt.same {
				t.Errorf("%s: posts %s and %s", tt.reason, first.ID, second.ID)
			}
			if second.Replayed != tt.replayed {
				t.Errorf("%s: the second response is marked as a repetition: %v, want %v", tt.reason, second.Replayed, tt.replayed)
			}
			if p.creates != tt.creates {
				t.Errorf("%s: %d creates, want %d", tt.reason, p.creates, tt.creates)
			}
		})
	}
}

// TestIdempotencyKeyOfAgents verifies that an agent's keys identify its own repeated requests, and never collide with
// another caller's keys.
func TestIdempotencyKeyOfAgents(t *testing.T) {
	t.Parallel()
	agent := bridge.Caller{Namespace: caller.Namespace, Key: "agent-a", Author: "oidc:ada", Agent: "Claude", Scopes: bridge.Scopes}
	second, elsewhere := agent, agent
	second.Key = "agent-b"
	elsewhere.Namespace = "team-b"
	named := bridge.Caller{Namespace: caller.Namespace, Key: "l", Agent: "scout"}
	for name, tc := range map[string]struct {
		by, then bridge.Caller
		same     bool
		reason   string
	}{
		"a draft would replace the post to be published": {agent, caller, false, "a draft is not a scheduled post"},
		"the agent would get another client's post":      {caller, agent, false, "agents see only their own posts"},
		"two agents":                           {agent, second, false, "each was allowed for itself"},
		"a repeated request takes effect once": {agent, agent, true, "agents may repeat requests"},
		"two teams":                            {agent, elsewhere, false, "keys belong to a team"},
		"two API keys":                         {caller, named, true, "the keys of a team are shared by its API keys, also by those that agents use"},
	} {
		s := service(&posts{stored: map[string]*v1alpha1.Post{}}, inMemory("a-x"))
		in := hello("a-x")
		in.IdempotencyKey = "k"
		var ids []string
		for _, by := range []bridge.Caller{tc.by, tc.then} {
			made, err := s.CreatePost(t.Context(), by, in)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			ids = append(ids, made.ID)
		}
		if (ids[0] == ids[1]) != tc.same {
			t.Errorf("%s: %q, since %s", name, ids, tc.reason)
		}
	}
}

// TestSimultaneousRequests sends a request twice concurrently: the second one finds no post at first, and the first
// one's post when it creates its own.
func TestSimultaneousRequests(t *testing.T) {
	in := hello("a-x")
	in.IdempotencyKey = "k"
	p := &posts{stored: map[string]*v1alpha1.Post{}}
	s := service(p, inMemory("a-x"))
	var first bridge.PostDetail
	p.creating = func() {
		p.creating = nil
		var err error
		if first, err = s.CreatePost(t.Context(), caller, in); err != nil {
			t.Error(err)
		}
	}
	second, err := s.CreatePost(t.Context(), caller, in)
	if err != nil {
		t.Fatal(err)
	}
	if first.ID != second.ID || first.Replayed || !second.Replayed || len(p.stored) != 1 {
		t.Errorf("posts %s (replayed: %v) and %s (replayed: %v), %d stored", first.ID, first.Replayed, second.ID, second.Replayed, len(p.stored))
	}
}

// TestFingerprintVersions resends a request first handled by another version of Herald.
func TestFingerprintVersions(t *testing.T) {
	const another = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, tt := range map[string]struct {
		reason   string
		change   func(fingerprint string) string
		wantCode string
	}{
		"this version":                      {"the requests are equal", func(f string) string { return f }, ""},
		"this version, another request":     {"a key belongs to one request", func(string) string { return "v1:" + another }, "CONFLICT"},
		"before versions":                   {"the hash has no version prefix", func(f string) string { return strings.TrimPrefix(f, "v1:") }, ""},
		"before versions, another request":  {"a key belongs to one request", func(string) string { return another }, "CONFLICT"},
		"a later version":                   {"an unknown version is not proof", func(string) string { return "v2:" + another }, "CONFLICT"},
		"a version of a name not seen here": {"an unknown algorithm is not proof", func(string) string { return "sha3:" + another }, "CONFLICT"},
	} {
		t.Run(name, func(t *testing.T) {
			in := hello("a-x")
			in.IdempotencyKey = "k"
			p := &posts{stored: map[string]*v1alpha1.Post{}}
			s := service(p, inMemory("a-x"))
			first, err := s.CreatePost(t.Context(), caller, in)
			if err != nil {
				t.Fatal(err)
			}
			annotations := p.stored[first.ID].Annotations
			written := annotations[v1alpha1.RequestAnnotation]
			if !strings.HasPrefix(written, "v1:") {
				t.Errorf("the fingerprint %q has no version", written)
			}
			annotations[v1alpha1.RequestAnnotation] = tt.change(written)
			second, err := s.CreatePost(t.Context(), caller, in)
			if code(err) != tt.wantCode || tt.wantCode == "" && (second.ID != first.ID || !second.Replayed) {
				t.Errorf("%s: %v, %v", tt.reason, second.ID, err)
			}
		})
	}
}

// TestKeyOfAnotherCaller creates a post under the name of a client's key in Kubernetes, as anyone with the key could.
func TestKeyOfAnotherCaller(t *testing.T) {
	in := hello("a-x")
	in.IdempotencyKey = "order-4711"
	p := &posts{stored: map[string]*v1alpha1.Post{}}
	s := service(p, inMemory("a-x"))
	first, err := s.CreatePost(t.Context(), caller, in)
	if err != nil {
		t.Fatal(err)
	}
	delete(p.stored[first.ID].Labels, v1alpha1.OriginLabel)
	if second, err := s.CreatePost(t.Context(), caller, in); code(err) != "CONFLICT" {
		t.Errorf("the response contains another request's post %s: %v", second.ID, err)
	}
}

func TestRejectionsAreNotStored(t *testing.T) {
	s := service(&posts{stored: map[string]*v1alpha1.Post{}}, inMemory("a-x"))
	in := hello("nobody")
	in.IdempotencyKey = "k"
	if _, err := s.CreatePost(t.Context(), caller, in); code(err) != "VALIDATION_ERROR" {
		t.Fatalf("got %v", err)
	}
	in.Spec.Targets[0].ConnectionRef.Name = "a-x"
	if _, err := s.CreatePost(t.Context(), caller, in); err != nil {
		t.Errorf("the corrected request is rejected: %v", err)
	}
}
