// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// TestMatches checks that a session is used only if its hash is in the post's status, regardless of who wrote the
// Secret.
func TestMatches(t *testing.T) {
	genuine := Session{ContentHash: "content", Checkpoint: "checkpoint", Secret: "https://upload.example/?id=1"}
	recorded := genuine.hash()
	for name, tc := range map[string]struct {
		reason string
		kept   Session
		noted  string
		want   bool
	}{
		"the same":                   {"the session is the stored one", genuine, recorded, true},
		"another address":            {"the session points elsewhere", Session{"content", "checkpoint", "http://10.0.0.1/"}, recorded, false},
		"another checkpoint":         {"the session is another upload", Session{"content", "another", genuine.Secret}, recorded, false},
		"another content":            {"the session was created for other content", Session{"another", "checkpoint", genuine.Secret}, recorded, false},
		"moved bytes":                {"the hash separates the parts", Session{"contentc", "heckpoint", genuine.Secret}, recorded, false},
		"the claim has no reference": {"no claim has used it", genuine, "", false},
		"an empty session":           {"the job has no session", Session{}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			post := &v1alpha1.Post{Status: v1alpha1.PostStatus{Targets: []v1alpha1.TargetStatus{{Prepared: &v1alpha1.Prepared{SecretHash: tc.noted}}}}}
			post.Spec.Targets = make([]v1alpha1.PostTarget, 1)
			owner := ownerOf(post, 0, "content")
			if owner.matches(&tc.kept) != tc.want {
				t.Errorf("%s: remembered is %v", tc.reason, !tc.want)
			}
		})
	}
}

// TestReplacedSession replaces a session while another process's claim is in flight. Whichever claim is stored, its
// session must be found.
func TestReplacedSession(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Succeed(t, corev1.AddToScheme(scheme))
	api := fake.NewClientBuilder().WithScheme(scheme).Build()
	p := &Preparer{sessions: sessions{client: api, live: api}}
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p", UID: "1"},
		Status:     v1alpha1.PostStatus{Targets: []v1alpha1.TargetStatus{{}}},
	}
	first, second := Prepared{"a", "https://upload.example/?id=a"}, Prepared{"b", "https://upload.example/?id=b"}
	for i, now := range []Prepared{first, {"a", "https://upload.example/?id=a&from=1"}, first, second} {
		owner := ownerOf(post, 0, "content")
		if i > 0 {
			owner.foundCheckpoint = "a"
		}
		must.Succeed(t, p.sessions.store(t.Context(), owner, now))
	}
	for name, tc := range map[string]struct {
		reason string
		noted  string
		want   string
	}{
		"the last one":     {"its claim is stored", hashOf("content", second), "b"},
		"the replaced one": {"its claim may have been stored", hashOf("content", first), "a"},
		"an older state":   {"the same process replaced it", hashOf("content", Prepared{"a", "https://upload.example/?id=a&from=1"}), ""},
		"none":             {"no claim refers to an upload", "", ""},
	} {
		post.Status.Targets[0].Prepared = &v1alpha1.Prepared{SecretHash: tc.noted}
		got, err := p.Session(t.Context(), post, 0)
		if err != nil || got.Checkpoint != tc.want {
			t.Errorf("%s: %q, %v, want %q: %s", name, got.Checkpoint, err, tc.want, tc.reason)
		}
	}
}
