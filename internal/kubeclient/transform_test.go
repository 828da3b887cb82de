// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeclient_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/test/must"
)

func ordinary() *v1alpha1.Post {
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "acme", Name: "p", UID: "u", ResourceVersion: "7", Finalizers: []string{v1alpha1.DeliveryFinalizer, "example.com/other"},
			Annotations:     map[string]string{v1alpha1.BornAnnotation: "then", "example.com/note": "short"},
			Labels:          map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI, "app": "x"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText},
	}
	for i := range 6 {
		post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{
			ConnectionRef: v1alpha1.LocalReference{Name: fmt.Sprintf("account-%d", i)}, Caption: strings.Repeat("a", 500),
			TikTok: &v1alpha1.TikTokOptions{Draft: true},
		})
	}
	post.Status.Targets = []v1alpha1.TargetStatus{{Index: 0, Phase: v1alpha1.PhaseDraft, Message: "waits"}}
	return post
}

func transformed[T any](t *testing.T, obj T) T {
	t.Helper()
	out, err := kubeclient.TransformForCache(obj)
	must.Succeed(t, err)
	same, ok := out.(T)
	if !ok {
		t.Fatalf("the cache got a %T for a %T", out, obj)
	}
	return same
}

func TestSmallPostIsUnchanged(t *testing.T) {
	want := ordinary()
	want.ManagedFields = nil
	got := transformed(t, ordinary())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("an ordinary post must be stored unchanged: -want +got:\n%s", diff)
	}
	if !kubeclient.IsComplete(got) {
		t.Error("the post counts as an incomplete copy")
	}
}

func TestLargePost(t *testing.T) {
	tree := func(cards, files int) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) {
			p.Spec.Tree = &v1alpha1.TreeContent{}
			for i := range cards {
				card := v1alpha1.TreeCard{Caption: strings.Repeat("c", 60)}
				for k := range files {
					card.MediaRefs = append(card.MediaRefs, v1alpha1.MediaReference{Name: fmt.Sprintf("m-%020d", i*files+k)})
				}
				p.Spec.Tree.Cards = append(p.Spec.Tree.Cards, card)
			}
		}
	}
	for _, tt := range []struct {
		reason string
		change func(*v1alpha1.Post)
		// media means that its references are kept.
		media bool
	}{
		{"long captions", func(p *v1alpha1.Post) {
			for i := range p.Spec.Targets {
				p.Spec.Targets[i].Caption = strings.Repeat("a", 40_000)
			}
		}, true},
		{"a long title", func(p *v1alpha1.Post) {
			p.Spec.Targets[0].YouTube = &v1alpha1.YouTubeOptions{Title: strings.Repeat("t", 4_096)}
		}, true},
		{"long alt texts of images", func(p *v1alpha1.Post) {
			p.Spec.Image = &v1alpha1.ImageContent{MediaRefs: make([]v1alpha1.MediaReference, 5)}
			for i := range p.Spec.Image.MediaRefs {
				p.Spec.Image.MediaRefs[i] = v1alpha1.MediaReference{Name: "m", AltText: strings.Repeat("a", 1_000)}
			}
		}, true},
		{"alt texts of a video and cards", func(p *v1alpha1.Post) {
			tree(5, 1)(p)
			p.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "m", AltText: strings.Repeat("a", 1_000)}}
			for i := range p.Spec.Tree.Cards {
				p.Spec.Tree.Cards[i].MediaRefs[0].AltText = strings.Repeat("a", 1_000)
			}
		}, true},
		{"kubectl's last-applied configuration", func(p *v1alpha1.Post) {
			p.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = strings.Repeat("a", 200_000)
		}, true},
		{"labels without end", func(p *v1alpha1.Post) {
			for i := range 3_000 {
				p.Labels[fmt.Sprintf("example.com/%063d", i)] = "no"
			}
		}, true},
		{"annotations that look like Herald's", func(p *v1alpha1.Post) {
			for i := range 2_000 {
				p.Annotations[fmt.Sprintf("social.herald.dev/z%062d", i)] = strings.Repeat("a", 60)
			}
		}, true},
		{"owners without end", func(p *v1alpha1.Post) {
			for i := range 2_000 {
				p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprint(i), UID: "c"})
			}
		}, true},
		{"a tree with a picture on each of a hundred cards", tree(100, 1), true},
		{"a tree with 2,000 files", tree(100, 20), false},
		{"a tree with 10,000 files", tree(100, 100), false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			post := ordinary()
			tt.change(post)
			buckets := kubeclient.MediaBuckets(post)
			before := post.DeepCopy()
			got := transformed(t, post)
			if kubeclient.IsComplete(got) {
				t.Fatal("an omitted text counts as complete")
			}
			stored, err := json.Marshal(got)
			must.Succeed(t, err)
			if len(stored) > 32<<10 {
				t.Errorf("%d bytes are stored", len(stored))
			}
			if diff := cmp.Diff(before.Status, got.Status); diff != "" {
				t.Errorf("the status is read while a post waits: %s", diff)
			}
			if got.Spec.Targets[3].ConnectionRef != before.Spec.Targets[3].ConnectionRef || len(got.Spec.Targets) != len(before.Spec.Targets) {
				t.Error("the accounts are missing")
			}
			if !slices.Equal(got.Finalizers, before.Finalizers) || got.UID != before.UID || got.ResourceVersion != before.ResourceVersion ||
				got.Annotations[v1alpha1.BornAnnotation] != "then" || got.Labels[v1alpha1.OriginLabel] != v1alpha1.OriginAPI {
				t.Errorf("the metadata lacks a field that is read: %+v", got.ObjectMeta)
			}
			if kubeclient.HasMediaRefs(got) != tt.media {
				t.Errorf("files are known: %t, want %t", kubeclient.HasMediaRefs(got), tt.media)
			}
			if diff := cmp.Diff(buckets, kubeclient.MediaBuckets(got)); diff != "" {
				t.Errorf("the post is no longer found by its files: %s", diff)
			}
			again := got.DeepCopy()
			if diff := cmp.Diff(again, transformed(t, got)); diff != "" {
				t.Errorf("a repeated transformation changed the object: %s", diff)
			}
		})
	}
}

// TestBuckets finds each file that a post names.
func TestBuckets(t *testing.T) {
	post := ordinary()
	post.Spec.Image = &v1alpha1.ImageContent{}
	for i := range 35 {
		post.Spec.Image.MediaRefs = append(post.Spec.Image.MediaRefs, v1alpha1.MediaReference{Name: fmt.Sprintf("m-%d", i)})
	}
	found := kubeclient.MediaBuckets(post)
	for _, ref := range post.Spec.Image.MediaRefs {
		if !slices.Contains(found, kubeclient.MediaBucket(ref.Name)) {
			t.Errorf("%s is in no bucket of the post", ref.Name)
		}
	}
	if len(found) > len(post.Spec.Image.MediaRefs) {
		t.Errorf("%d buckets for %d files", len(found), len(post.Spec.Image.MediaRefs))
	}
}

func TestOtherKinds(t *testing.T) {
	conn := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{
		Name: "x", Annotations: map[string]string{v1alpha1.ProbeAnnotation: "p", "example.com/note": strings.Repeat("a", 100_000)},
	}, Spec: v1alpha1.ConnectionSpec{AccountID: "7"}}
	got := transformed(t, conn)
	if kubeclient.IsComplete(got) || got.Annotations["example.com/note"] != "" || got.Annotations[v1alpha1.ProbeAnnotation] != "p" || got.Spec.AccountID != "7" {
		t.Errorf("only foreign annotations may be omitted from a connection, got %+v", got)
	}
	missed := toolscache.DeletedFinalStateUnknown{Key: "a/b"}
	if got := transformed(t, missed); got != missed {
		t.Errorf("a tombstone became %v", got)
	}
}

func TestTransformForLeader(t *testing.T) {
	out, err := kubeclient.TransformForLeader(ordinary())
	must.Succeed(t, err)
	got, ok := out.(*v1alpha1.Post)
	switch {
	case !ok:
		t.Fatalf("got a %T", out)
	case kubeclient.IsComplete(got) || got.Spec.Targets[0].Caption != "":
		t.Error("the leader keeps the contents of a post that another replica delivers")
	case got.Spec.Targets[0].ConnectionRef.Name != "account-0" || got.Status.Targets[0].Message != "waits":
		t.Error("its other controllers lack the connections or the status of a post")
	}
	if team, err := kubeclient.TransformForLeader(&v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); err != nil || team.(*v1alpha1.Team).Name != "a" {
		t.Errorf("other kinds are cached as usual; got %v, %v", team, err)
	}
}

func TestMetadataOfPosts(t *testing.T) {
	post := &metav1.PartialObjectMetadata{ObjectMeta: ordinary().ObjectMeta}
	post.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Post"))
	got := transformed(t, post)
	want := metav1.ObjectMeta{Namespace: "acme", Name: "p", UID: "u", ResourceVersion: "7", Labels: map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}}
	if diff := cmp.Diff(want, got.ObjectMeta); diff != "" {
		t.Errorf("every replica keeps the metadata of all posts, to count them and to label them (-want +got):\n%s", diff)
	}
	binding := &metav1.PartialObjectMetadata{ObjectMeta: ordinary().ObjectMeta}
	binding.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Usage"))
	if len(transformed(t, binding).Annotations) != 2 {
		t.Error("the annotations of other kinds are read")
	}
}
