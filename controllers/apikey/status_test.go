// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apikey

import (
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestNewToken(t *testing.T) {
	a, b := newToken(), newToken()
	if a == b {
		t.Errorf("the same token twice: %s", a)
	}
	if !wellFormed(a) || !regexp.MustCompile(`^hrld_[a-z2-7]{52}$`).MatchString(a) {
		t.Errorf("%q is not a prefix and 260 bits in base32", a)
	}
}

func TestAdopt(t *testing.T) {
	key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Name: "ci", UID: "u1"}}
	token := newToken()
	owned := func(uid, content string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "ci-token", OwnerReferences: []metav1.OwnerReference{{UID: "u1", Controller: new(uid == "u1")}}},
			Data:       map[string][]byte{"token": []byte(content)},
		}
	}
	tests := map[string]struct {
		reason  string
		secret  *corev1.Secret
		refused bool
		want    v1alpha1.APIKeyStatus
	}{
		"made for this key": {
			"the status shows the hash and the beginning of the token, never the token",
			owned("u1", token), false,
			v1alpha1.APIKeyStatus{TokenSHA256: hash(token), Prefix: token[:9], SecretRef: &v1alpha1.LocalReference{Name: "ci-token"}},
		},
		"somebody else's":    {"its content may be known to others", owned("u2", token), true, v1alpha1.APIKeyStatus{}},
		"emptied":            {"there is no token in it", owned("u1", ""), true, v1alpha1.APIKeyStatus{}},
		"a password instead": {"a short secret that a person chose could be guessed", owned("u1", "hrld_hunter2"), true, v1alpha1.APIKeyStatus{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := key.DeepCopy()
			refused := adopt(got, tc.secret)
			if diff := cmp.Diff(tc.want, got.Status); diff != "" || (refused != nil) != tc.refused {
				t.Errorf("%s: refusal %+v (-want +got):\n%s", tc.reason, refused, diff)
			}
		})
	}
}

func TestSummarizeAndNextCheck(t *testing.T) {
	at := func(d time.Duration) *v1alpha1.Time { return v1alpha1.NewTimePtr(noon.Add(d)) }
	type want struct {
		Ready    bool
		Reason   string
		Progress conditions.Progress
		Next     time.Duration
	}
	tests := map[string]struct {
		reason  string
		spec    v1alpha1.APIKeySpec
		trouble *refusal
		want    want
	}{
		"for ever":          {"a key without an end is never looked at again", v1alpha1.APIKeySpec{}, nil, want{true, "Active", conditions.Settled, 0}},
		"for an hour":       {"the end of a key is acted on when it comes", v1alpha1.APIKeySpec{ExpiresAt: at(time.Hour)}, nil, want{true, "Active", conditions.Settled, time.Hour + wakeMargin}},
		"just ended":        {"the end itself is too late", v1alpha1.APIKeySpec{ExpiresAt: at(0)}, nil, want{false, "Expired", conditions.Stuck, 0}},
		"revoked":           {"revoked outweighs everything", v1alpha1.APIKeySpec{Revoked: true, ExpiresAt: at(time.Hour)}, nil, want{false, "Revoked", conditions.Stuck, 0}},
		"revoked and ended": {"revoked is the stronger word", v1alpha1.APIKeySpec{Revoked: true, ExpiresAt: at(-time.Hour)}, nil, want{false, "Revoked", conditions.Stuck, 0}},
		"Secret refused":    {"a person has to make room for the Secret", v1alpha1.APIKeySpec{}, &refusal{message: "m"}, want{false, "SecretRefused", conditions.Stuck, 0}},
		"no rights yet":     {"the Team may still be on the way", v1alpha1.APIKeySpec{}, &refusal{message: "m", again: time.Minute}, want{false, "SecretRefused", conditions.Underway, time.Minute}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			key := &v1alpha1.APIKey{Spec: tc.spec}
			s := summarize(key, tc.trouble, noon)
			got := want{s.Ready, s.Reason, s.Progress, nextCheck(key, tc.trouble, noon)}
			if diff := cmp.Diff(tc.want, got); diff != "" || s.Message == "" {
				t.Errorf("%s: message %q (-want +got):\n%s", tc.reason, s.Message, diff)
			}
		})
	}
}
