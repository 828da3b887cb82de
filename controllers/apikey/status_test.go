// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apikey

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/apitoken"
	"github.com/herald-social/herald/internal/conditions"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestAdopt(t *testing.T) {
	key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "ci", UID: "u1"}}
	token := apitoken.New("n", "ci")
	owned := func(uid, content string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: "ci-token", CreationTimestamp: metav1.NewTime(noon),
				OwnerReferences: []metav1.OwnerReference{{UID: "u1", Controller: new(uid == "u1")}},
			},
			Data: map[string][]byte{"token": []byte(content)},
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		secret  *corev1.Secret
		refused bool
		want    v1alpha1.APIKeyStatus
	}{
		"a Secret created for this key": {
			"the status contains the token's hash and prefix, never the token",
			owned("u1", token), false,
			v1alpha1.APIKeyStatus{Tokens: []v1alpha1.APIKeyTokenStatus{{
				Name: "token", CreatedAt: v1alpha1.NewTime(noon), SHA256: apitoken.Hash("n", "ci", token), Prefix: token[:22],
				SecretRef: &v1alpha1.LocalReference{Name: "ci-token"},
			}}},
		},
		"another key's Secret":    {"other users may know its content", owned("u2", token), true, v1alpha1.APIKeyStatus{}},
		"emptied":                 {"the Secret does not contain a token", owned("u1", ""), true, v1alpha1.APIKeyStatus{}},
		"a password as the token": {"a short, user-chosen secret could be guessed", owned("u1", "hrld_hunter2"), true, v1alpha1.APIKeyStatus{}},
		"of an old release":       {"its format does not contain the key's id", owned("u1", "hrld_"+strings.Repeat("a", 52)), true, v1alpha1.APIKeyStatus{}},
		"of another key":          {"its id belongs to another key", owned("u1", apitoken.New("n", "cd")), true, v1alpha1.APIKeyStatus{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := key.DeepCopy()
			refused := adopt(got, "token", tc.secret)
			if diff := cmp.Diff(tc.want, got.Status); diff != "" || (refused != nil) != tc.refused {
				t.Errorf("%s: refusal %+v (-want +got):\n%s", tc.reason, refused, diff)
			}
		})
	}
}

func TestWithdrawn(t *testing.T) {
	handedOut := func(name string) v1alpha1.APIKeyToken { return v1alpha1.APIKeyToken{Name: name, SHA256: "h"} }
	wanted := func(tokens ...v1alpha1.APIKeyToken) v1alpha1.APIKeySpec { return v1alpha1.APIKeySpec{Tokens: tokens} }
	created, seen := v1alpha1.APIKeyTokenStatus{Name: "token", SHA256: "h"}, v1alpha1.APIKeyTokenStatus{Name: "token"}
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.APIKeySpec
		found  []v1alpha1.APIKeyTokenStatus
		want   []string
	}{
		"new":                             {"no token was created yet", wanted(), nil, nil},
		"expected":                        {"the manager created it", wanted(), []v1alpha1.APIKeyTokenStatus{created}, nil},
		"named":                           {"a listed token may be the default one", wanted(v1alpha1.APIKeyToken{Name: "token"}), []v1alpha1.APIKeyTokenStatus{created}, nil},
		"second":                          {"a second token does not affect the first", wanted(v1alpha1.APIKeyToken{Name: "token"}, handedOut("b")), []v1alpha1.APIKeyTokenStatus{created}, nil},
		"handed out":                      {"the external token does not have a Secret", wanted(handedOut("token")), []v1alpha1.APIKeyTokenStatus{seen}, nil},
		"removed":                         {"the spec no longer lists it", wanted(v1alpha1.APIKeyToken{Name: "b"}), []v1alpha1.APIKeyTokenStatus{created}, []string{"token"}},
		"issued by the apiserver instead": {"the spec has replaced the manager's token", wanted(handedOut("token")), []v1alpha1.APIKeyTokenStatus{created}, []string{"token"}},
		"created by the manager instead":  {"the manager has to create one", wanted(), []v1alpha1.APIKeyTokenStatus{seen}, []string{"token"}},
		"revoked":                         {"a Secret may exist without a status entry", v1alpha1.APIKeySpec{Revoked: true}, nil, []string{"token"}},
	} {
		t.Run(name, func(t *testing.T) {
			key := &v1alpha1.APIKey{Spec: tc.spec, Status: v1alpha1.APIKeyStatus{Tokens: tc.found}}
			if diff := cmp.Diff(tc.want, revoked(key)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
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
	for name, tc := range map[string]struct {
		reason  string
		spec    v1alpha1.APIKeySpec
		trouble *refusal
		want    want
	}{
		"for ever":          {"a key without an expiry needs no further check", v1alpha1.APIKeySpec{}, nil, want{true, "Active", conditions.Settled, 0}},
		"for an hour":       {"the key is checked when it expires", v1alpha1.APIKeySpec{ExpiresAt: at(time.Hour)}, nil, want{true, "Active", conditions.Settled, time.Hour + wakeMargin}},
		"two tokens":        {"the key is valid while one of its tokens is", v1alpha1.APIKeySpec{Tokens: []v1alpha1.APIKeyToken{{Name: "a", ExpiresAt: at(0)}, {Name: "b", ExpiresAt: at(time.Hour)}}}, nil, want{true, "Active", conditions.Settled, time.Hour + wakeMargin}},
		"one without end":   {"the other may expire", v1alpha1.APIKeySpec{Tokens: []v1alpha1.APIKeyToken{{Name: "a", ExpiresAt: at(0)}, {Name: "b"}}}, nil, want{true, "Active", conditions.Settled, 0}},
		"both expired":      {"no token is valid", v1alpha1.APIKeySpec{Tokens: []v1alpha1.APIKeyToken{{Name: "a", ExpiresAt: at(0)}, {Name: "b", ExpiresAt: at(-time.Hour)}}}, nil, want{false, "Expired", conditions.Stuck, 0}},
		"key ends first":    {"tokens expire with their key", v1alpha1.APIKeySpec{ExpiresAt: at(0), Tokens: []v1alpha1.APIKeyToken{{Name: "a", ExpiresAt: at(time.Hour)}}}, nil, want{false, "Expired", conditions.Stuck, 0}},
		"just ended":        {"a key is invalid at its expiry", v1alpha1.APIKeySpec{ExpiresAt: at(0)}, nil, want{false, "Expired", conditions.Stuck, 0}},
		"revoked":           {"revocation takes precedence over expiry", v1alpha1.APIKeySpec{Revoked: true, ExpiresAt: at(time.Hour)}, nil, want{false, "Revoked", conditions.Stuck, 0}},
		"revoked and ended": {"revocation takes precedence over expiry", v1alpha1.APIKeySpec{Revoked: true, ExpiresAt: at(-time.Hour)}, nil, want{false, "Revoked", conditions.Stuck, 0}},
		"Secret refused":    {"an administrator has to make room for the Secret", v1alpha1.APIKeySpec{}, &refusal{message: "m"}, want{false, "SecretRefused", conditions.Stuck, 0}},
		"no rights yet":     {"the Team may not exist yet", v1alpha1.APIKeySpec{}, &refusal{message: "m", retryAfter: time.Minute}, want{false, "SecretRefused", conditions.Underway, time.Minute}},
	} {
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
