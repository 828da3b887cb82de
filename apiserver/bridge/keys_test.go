// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/internal/apitoken"
)

var keysResource = schema.GroupResource{Group: "social.herald.dev", Resource: "apikeys"}

// keys is a fake Kubernetes API with API keys. Each write consumes the next of faults.
type keys struct {
	stored  map[string]*v1alpha1.APIKey
	faults  []fault
	version int
	// between, if set, is called at each update.
	between func()
}

func (k *keys) List(context.Context, string) (all []v1alpha1.APIKey, err error) {
	for _, key := range k.stored {
		all = append(all, *key)
	}
	return all, nil
}

func (k *keys) Get(_ context.Context, _, name string) (*v1alpha1.APIKey, error) {
	if key, ok := k.stored[name]; ok {
		return key.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(keysResource, name)
}

func (k *keys) write(key *v1alpha1.APIKey, refused error) (*v1alpha1.APIKey, error) {
	var f fault
	if len(k.faults) > 0 {
		f, k.faults = k.faults[0], k.faults[1:]
	}
	if f.err != nil && !f.lands {
		return nil, f.err
	}
	if refused != nil {
		return nil, refused
	}
	k.version++
	key = key.DeepCopy()
	key.ResourceVersion, key.CreationTimestamp = strconv.Itoa(k.version), metav1.NewTime(now)
	k.stored[key.Name] = key
	return key.DeepCopy(), f.err
}

func (k *keys) Create(_ context.Context, key *v1alpha1.APIKey) (*v1alpha1.APIKey, error) {
	var refused error
	if k.stored[key.Name] != nil {
		refused = apierrors.NewAlreadyExists(keysResource, key.Name)
	}
	return k.write(key, refused)
}

func (k *keys) Update(_ context.Context, before, after *v1alpha1.APIKey) (*v1alpha1.APIKey, error) {
	if k.between != nil {
		k.between()
		k.between = nil
	}
	var refused error
	if stored := k.stored[before.Name]; stored == nil || stored.ResourceVersion != before.ResourceVersion {
		refused = apierrors.NewConflict(keysResource, before.Name, nil)
	}
	return k.write(after, refused)
}

func withKeys(stored ...*v1alpha1.APIKey) (*bridge.Service, *keys, *events) {
	k, e := &keys{stored: map[string]*v1alpha1.APIKey{}}, &events{}
	for _, key := range stored {
		k.stored[key.Name] = key
	}
	s := service(&posts{}, &connections{})
	s.Keys, s.Events = k, e
	return s, k, e
}

// opens reports whether a token is valid for a stored key.
func opens(key *v1alpha1.APIKey, token string) bool {
	for _, t := range key.Spec.Tokens {
		if t.SHA256 == apitoken.Hash(key.Namespace, key.Name, token) {
			return true
		}
	}
	return false
}

func TestCreateKey(t *testing.T) {
	t.Parallel()
	lost := errors.New("read: connection reset by peer")
	for name, tc := range map[string]struct {
		reason      string
		description string
		end         time.Time
		faults      []fault
		want        string
		message     string
	}{
		"Plain":   {"a key without an expiry is valid", " For CI ", time.Time{}, nil, "", ""},
		"Ends":    {"the key expires", "For CI", now.Add(time.Millisecond), nil, "", ""},
		"Ended":   {"the key would be expired at its creation", "For CI", now, nil, "VALIDATION_ERROR", "expires_at: must be in the future"},
		"TooLate": {"its year is not supported", "For CI", time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC), nil, "VALIDATION_ERROR", "after the year 2999"},
		"Last":    {"the last supported year is accepted", "For CI", time.Date(2999, 12, 31, 0, 0, 0, 0, time.UTC), nil, "", ""},
		"Long":    {"names have at most 500 characters", strings.Repeat("é", 501), time.Time{}, nil, "VALIDATION_ERROR", "has 501 characters"},
		"Longest": {"a name of the maximum length", strings.Repeat("é", 500), time.Time{}, nil, "", ""},
		"Landed":  {"the response was lost", "For CI", time.Time{}, []fault{{true, lost}}, "", ""},
		"Lost":    {"the request was lost", "For CI", time.Time{}, []fault{{false, lost}}, "", ""},
		"Refused": {"Herald lacks the permission", "For CI", time.Time{}, []fault{{false, apierrors.NewForbidden(keysResource, "k", lost)}}, "internal", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k, trail := withKeys()
			k.faults = tc.faults
			made, err := s.CreateKey(t.Context(), person, tc.description, tc.end)
			if code(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.message) {
				t.Fatalf("%s: error %v, want %q with %q", tc.reason, err, tc.want, tc.message)
			}
			if err != nil {
				if len(k.stored) > 0 || made.Token != "" {
					t.Errorf("%s: a key was created: %v", tc.reason, k.stored)
				}
				return
			}
			key := k.stored[made.Key]
			if len(k.stored) != 1 || !opens(key, made.Token) || !strings.HasPrefix(key.Name, "k-") || key.Spec.Description != strings.TrimSpace(tc.description) {
				t.Errorf("%s: stored %+v", tc.reason, key)
			}
			for _, text := range []string{strings.Join(trail.written, " "), key.Annotations[v1alpha1.ShownTokensAnnotation], key.Spec.Tokens[0].SHA256} {
				if strings.Contains(text, made.Token) {
					t.Errorf("%s: the token was returned: %s", tc.reason, text)
				}
			}
			listed, err := s.ListKeys(t.Context(), person)
			want := []bridge.APIKey{{
				ID: made.Key, Description: strings.TrimSpace(tc.description), State: bridge.KeyActive, CreatedAt: now, ExpiresAt: tc.end, Author: "herald:link",
				Tokens: []bridge.KeyToken{{Name: made.Name, Shown: apitoken.Shown(made.Token), ExpiresAt: tc.end}},
			}}
			if diff := cmp.Diff(want, listed); err != nil || diff != "" {
				t.Errorf("%s: listed %v -want +got:\n%s", tc.reason, err, diff)
			}
			if len(trail.written) != 1 || !strings.HasPrefix(trail.written[0], "KeyCreatedByPerson APIKey/k-") {
				t.Errorf("%s: its trail is %v", tc.reason, trail.written)
			}
		})
	}
}

// applied returns a key whose token the manager created.
func applied(edits ...func(*v1alpha1.APIKey)) *v1alpha1.APIKey {
	key := &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "ci", ResourceVersion: "0", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Status: v1alpha1.APIKeyStatus{LastUsedAt: v1alpha1.NewTimePtr(now), Tokens: []v1alpha1.APIKeyTokenStatus{{
			Name: "token", CreatedAt: v1alpha1.NewTime(now), Prefix: "hrld_0abc_WXYZ", SecretRef: &v1alpha1.LocalReference{Name: "ci-token"},
		}}},
	}
	for _, edit := range edits {
		edit(key)
	}
	return key
}

func ends(at time.Time) func(*v1alpha1.APIKey) {
	return func(k *v1alpha1.APIKey) { k.Spec.ExpiresAt = v1alpha1.NewTimePtr(at) }
}

func revoked(k *v1alpha1.APIKey) { k.Spec.Revoked = true }

func TestListKeys(t *testing.T) {
	t.Parallel()
	token := []bridge.KeyToken{{Name: "token", Shown: "hrld_0abc_WXYZ", CreatedAt: now, Secret: "ci-token"}}
	for name, tc := range map[string]struct {
		reason string
		key    *v1alpha1.APIKey
		state  bridge.KeyState
	}{
		"Active":  {"the key grants access", applied(), bridge.KeyActive},
		"Ends":    {"the key is valid until then", applied(ends(now.Add(time.Millisecond))), bridge.KeyActive},
		"Ended":   {"the key expires at that moment", applied(ends(now)), bridge.KeyExpired},
		"Revoked": {"revocation takes precedence", applied(ends(now), revoked), bridge.KeyRevoked},
		"TokenEnded": {"its only token has expired", applied(func(k *v1alpha1.APIKey) {
			k.Spec.Tokens = []v1alpha1.APIKeyToken{{Name: "token", ExpiresAt: v1alpha1.NewTimePtr(now)}}
		}), bridge.KeyExpired},
	} {
		s, _, _ := withKeys(tc.key)
		got, err := s.ListKeys(t.Context(), person)
		if err != nil || len(got) != 1 || got[0].State != tc.state || !got[0].LastUsedAt.Equal(now) || got[0].Author != "" {
			t.Errorf("%s: %s: %+v, %v", name, tc.reason, got, err)
			continue
		}
		got[0].Tokens[0].ExpiresAt = time.Time{}
		if diff := cmp.Diff(token, got[0].Tokens); diff != "" {
			t.Errorf("%s: tokens:\n%s", name, diff)
		}
	}
	older := applied(func(k *v1alpha1.APIKey) { k.Name, k.CreationTimestamp = "a", metav1.NewTime(now.Add(-2*time.Hour)) })
	same := applied(func(k *v1alpha1.APIKey) { k.Name = "b" })
	s, _, _ := withKeys(older, applied(), same)
	got, err := s.ListKeys(t.Context(), person)
	if err != nil || len(got) != 3 || got[0].ID+got[1].ID+got[2].ID != "bcia" {
		t.Errorf("newest first, then by name: %+v, %v", got, err)
	}
}

// TestRotateKey verifies that a token is replaced without a gap, and that no failure leaves a token that nobody has seen.
func TestRotateKey(t *testing.T) {
	t.Parallel()
	lost := errors.New("read: connection reset by peer")
	busy := fault{err: apierrors.NewConflict(keysResource, "ci", lost)}
	made := func(edits ...func(*v1alpha1.APIKey)) *v1alpha1.APIKey {
		return applied(append(edits, func(k *v1alpha1.APIKey) { k.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginWeb} })...)
	}
	full := made(func(k *v1alpha1.APIKey) { k.Spec.Tokens = []v1alpha1.APIKeyToken{{Name: "a"}, {Name: "b"}} })
	for name, tc := range map[string]struct {
		reason  string
		key     *v1alpha1.APIKey
		faults  []fault
		between func(*keys)
		id      string
		want    string
	}{
		"Applied":   {"another tool manages its tokens", applied(), nil, nil, "ci", "CONFLICT"},
		"Plain":     {"the first token remains", made(), nil, nil, "ci", ""},
		"Conflict":  {"another request changed the key", made(), nil, func(k *keys) { k.stored["ci"].ResourceVersion = "x" }, "ci", ""},
		"Landed":    {"the response was lost", made(), []fault{{true, lost}}, nil, "ci", ""},
		"Lost":      {"the request was lost", made(), []fault{{false, lost}}, nil, "ci", ""},
		"StaysLost": {"the Kubernetes API is unavailable", made(), []fault{{false, lost}, {false, lost}, {false, lost}, {false, lost}, {false, lost}}, nil, "ci", "internal"},
		"Busy":      {"each update conflicts", made(), []fault{busy, busy, busy, busy, busy}, nil, "ci", "CONFLICT"},
		"Full":      {"a token has to be removed first", full, nil, nil, "ci", "CONFLICT"},
		"Revoked":   {"a revoked key is invalid", made(revoked), nil, nil, "ci", "CONFLICT"},
		"Expired":   {"an expired key is invalid", made(ends(now)), nil, nil, "ci", "CONFLICT"},
		"Nowhere":   {"the key does not exist", made(), nil, nil, "other", "NOT_FOUND"},
		"Odd":       {"no key can have this name", made(), nil, nil, "../ci", "NOT_FOUND"},
		"Refused":   {"Herald lacks the permission", made(), []fault{{false, apierrors.NewForbidden(keysResource, "ci", lost)}}, nil, "ci", "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k, trail := withKeys(tc.key)
			k.faults = tc.faults
			if tc.between != nil {
				k.between = func() { tc.between(k) }
			}
			before := len(tc.key.Spec.Tokens)
			made, err := s.RollKey(t.Context(), person, tc.id)
			if code(err) != tc.want {
				t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			key := k.stored["ci"]
			if err != nil {
				if len(key.Spec.Tokens) != before || trail.written != nil || made.Token != "" {
					t.Errorf("%s: a token was created: %+v", tc.reason, key.Spec)
				}
				return
			}
			if len(key.Spec.Tokens) != 2 || key.Spec.Tokens[0].Name != "token" || key.Spec.Tokens[0].SHA256 != "" || !opens(key, made.Token) || made.Key != "ci" {
				t.Errorf("%s: tokens %+v", tc.reason, key.Spec.Tokens)
			}
			if len(trail.written) != 1 || !strings.HasPrefix(trail.written[0], "TokenAddedByPerson APIKey/ci") || key.Annotations[v1alpha1.LastAuthorAnnotation] != "herald:link" {
				t.Errorf("%s: its trail is %v, %v", tc.reason, trail.written, key.Annotations)
			}
			if k.version != 1 {
				t.Errorf("%s: it was stored %d times", tc.reason, k.version)
			}
			for range 2 { // the button is pressed twice
				if err := s.RemoveToken(t.Context(), person, "ci", "token"); err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
			}
			if key = k.stored["ci"]; len(key.Spec.Tokens) != 1 || !opens(key, made.Token) {
				t.Errorf("%s: the new one stays: %+v", tc.reason, key.Spec.Tokens)
			}
			if err := s.RemoveToken(t.Context(), person, "ci", made.Name); code(err) != "CONFLICT" {
				t.Errorf("%s: the last one is not removed: %v", tc.reason, err)
			}
		})
	}
}

func TestRevokeKey(t *testing.T) {
	t.Parallel()
	s, k, trail := withKeys(applied())
	for range 2 {
		if err := s.RevokeKey(t.Context(), person, "ci"); err != nil {
			t.Fatal(err)
		}
	}
	if !k.stored["ci"].Spec.Revoked || len(trail.written) != 1 || !strings.HasPrefix(trail.written[0], "KeyRevokedByPerson APIKey/ci") {
		t.Errorf("%+v, %v", k.stored["ci"].Spec, trail.written)
	}
	if err := s.RemoveToken(t.Context(), person, "ci", "token"); code(err) != "CONFLICT" || !strings.Contains(err.Error(), "where it is declared") {
		t.Errorf("another tool declares its tokens: %v", err)
	}
	if err := s.RevokeKey(t.Context(), person, "other"); code(err) != "NOT_FOUND" {
		t.Errorf("the key does not exist: %v", err)
	}
}

func TestShownTokensFollow(t *testing.T) {
	t.Parallel()
	s, k, _ := withKeys()
	first, err := s.CreateKey(t.Context(), person, "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.RollKey(t.Context(), person, first.Key)
	if err != nil {
		t.Fatal(err)
	}
	shown := func() string { return k.stored[first.Key].Annotations[v1alpha1.ShownTokensAnnotation] }
	one, two := first.Name+"="+apitoken.Shown(first.Token), second.Name+"="+apitoken.Shown(second.Token)
	if shown() != one+","+two {
		t.Errorf("the key has the shown tokens %q", shown())
	}
	if err := s.RemoveToken(t.Context(), person, first.Key, first.Name); err != nil || shown() != two {
		t.Errorf("the key has the shown tokens %q, %v", shown(), err)
	}
}
