// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/internal/apitoken"
)

var now = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// Two tokens of the key a/k.
var (
	token  = apitoken.New("a", "k")
	second = apitoken.New("a", "k")
)

func key(namespace, name string, edit func(k *v1alpha1.APIKey)) *v1alpha1.APIKey {
	k := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}}
	edit(k)
	return k
}

// handedOut returns a key with the hashes of a/k's tokens.
func handedOut(namespace, name string, tokens ...string) *v1alpha1.APIKey {
	return key(namespace, name, func(k *v1alpha1.APIKey) {
		for i, t := range tokens {
			k.Spec.Tokens = append(k.Spec.Tokens, v1alpha1.APIKeyToken{Name: strconv.Itoa(i), SHA256: apitoken.Hash("a", "k", t)})
		}
	})
}

// made returns the key a/k with a named token from the manager.
func made(name, token string) *v1alpha1.APIKey {
	return key("a", "k", func(k *v1alpha1.APIKey) {
		k.Status.Tokens = []v1alpha1.APIKeyTokenStatus{{Name: name, SHA256: apitoken.Hash("a", "k", token)}}
	})
}

func with(k *v1alpha1.APIKey, edit func(k *v1alpha1.APIKey)) *v1alpha1.APIKey {
	edit(k)
	return k
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) *v1alpha1.Time { return v1alpha1.NewTimePtr(now.Add(d)) }
	keys := func(keys ...*v1alpha1.APIKey) []*v1alpha1.APIKey { return keys }
	one, two := handedOut("a", "k", token), handedOut("a", "k", token, second)
	none := key("a", "k", func(*v1alpha1.APIKey) {})
	revoked := with(handedOut("a", "k", token), func(k *v1alpha1.APIKey) { k.Spec.Revoked = true })
	leaving := with(handedOut("a", "k", token), func(k *v1alpha1.APIKey) { k.DeletionTimestamp = &metav1.Time{Time: now} })
	keyEnds := func(end time.Duration) *v1alpha1.APIKey {
		return with(handedOut("a", "k", token), func(k *v1alpha1.APIKey) { k.Spec.ExpiresAt = at(end) })
	}
	firstEnds := func(k *v1alpha1.APIKey, end time.Duration) *v1alpha1.APIKey {
		return with(k.DeepCopy(), func(k *v1alpha1.APIKey) { k.Spec.Tokens[0].ExpiresAt = at(end) })
	}
	respecified := func(of v1alpha1.APIKeyToken) *v1alpha1.APIKey {
		return with(made("token", token), func(k *v1alpha1.APIKey) { k.Spec.Tokens = []v1alpha1.APIKeyToken{of} })
	}
	replaced := v1alpha1.APIKeyToken{Name: "token", SHA256: apitoken.Hash("a", "k", second)}
	thief, sibling := handedOut("thief", "k", token), handedOut("a", "k2", token)
	for name, tc := range map[string]struct {
		reason  string
		keys    []*v1alpha1.APIKey
		token   string
		wantErr error // nil means that the token is one of a/k
		served  configv1alpha1.Namespaces
	}{
		"FromSpec":   {"a token set at creation works before the manager has processed the key", keys(one), token, nil, nil},
		"FromStatus": {"a token created by the manager works", keys(made("token", token)), token, nil, nil},
		"First":      {"during a rotation, the old token works", keys(two), token, nil, nil},
		"Second":     {"during a rotation, the new token works as well", keys(two), second, nil, nil},
		"Removed": {
			"a token removed from the spec is invalid before the manager has processed it",
			keys(respecified(v1alpha1.APIKeyToken{Name: "b"})), token, access.ErrKeyUnknown, nil,
		},
		"Replaced": {
			"hashes in the spec replace hashes in the status",
			keys(respecified(replaced)), token, access.ErrKeyUnknown, nil,
		},
		"Unknown": {"the key has another token", keys(one), second, access.ErrKeyUnknown, nil},
		"Served":  {"this installation serves the team", keys(one), token, nil, configv1alpha1.Namespaces{"a"}},
		"NotServed": {
			"another installation serves the team",
			keys(one), token, access.ErrKeyUnknown,
			configv1alpha1.Namespaces{"b"},
		},
		"NoSuchKey": {"no key has the token's id", keys(handedOut("a", "other", token)), token, access.ErrKeyUnknown, nil},
		"Mistyped":  {"the checksum is wrong", keys(one), token[:len(token)-1] + "_", access.ErrKeyMalformed, nil},
		"HashIsNoToken": {
			"the stored hash, which others can read, is not a token",
			keys(one), apitoken.Hash("a", "k", token), access.ErrKeyMalformed, nil,
		},
		"KeyWithoutToken": {"a key whose token does not exist yet is invalid", keys(none), token, access.ErrKeyUnknown, nil},
		"Empty":           {"an empty token does not match a key without a token", keys(none), "", access.ErrKeyMalformed, nil},
		"Revoked":         {"a revoked key is invalid", keys(revoked), token, access.ErrKeyRevoked, nil},
		"BeingDeleted":    {"a deleted key is invalid even if finalizers keep the object", keys(leaving), token, access.ErrKeyRevoked, nil},
		"NotExpiredYet":   {"a key is valid until it expires", keys(keyEnds(time.Millisecond)), token, nil, nil},
		"Expired":         {"a key is invalid when it expires", keys(keyEnds(0)), token, access.ErrKeyExpired, nil},
		"OldExpired":      {"the old token expires at its own time", keys(firstEnds(two, 0)), token, access.ErrKeyExpired, nil},
		"NewGoesOn":       {"the new token remains valid", keys(firstEnds(two, 0)), second, nil, nil},
		"KeyEndsFirst":    {"a token expires with its key", keys(firstEnds(keyEnds(0), time.Hour)), token, access.ErrKeyExpired, nil},
		"SameTokenTwice": {
			"if a token expires twice, the later time counts",
			keys(firstEnds(handedOut("a", "k", token, token), 0)), token, nil, nil,
		},
		"CopiedHash":          {"keys with a copied hash do not take over the token", keys(thief, sibling, one), token, nil, nil},
		"CopiedHashOfDeleted": {"deleting the token's own key does not validate copies", keys(thief, sibling), token, access.ErrKeyUnknown, nil},
		"CopiedHashOfRevoked": {
			"a revoked token stays revoked even if other keys contain its hash",
			keys(thief, revoked), token, access.ErrKeyRevoked, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, access.KeyIndexers(tc.served))
			for _, k := range tc.keys {
				if err := indexer.Add(k); err != nil {
					t.Fatal(err)
				}
			}
			got, err := access.NewKeyCache(indexer, clocktesting.NewFakePassiveClock(now)).Authenticate(tc.token)
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("%s: error %v, want %v", tc.reason, err, tc.wantErr)
			}
			if err == nil && got.Namespace+"/"+got.Name != "a/k" {
				t.Errorf("%s: got key %s/%s, want a/k", tc.reason, got.Namespace, got.Name)
			}
		})
	}
}

func TestLastUsedAtMostHourly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := clocktesting.NewFakePassiveClock(now)
		var writes []time.Time
		var failure error
		used := access.NewLastUsed(func(_ context.Context, namespace, name string, at time.Time) error {
			if namespace != "a" || name != "k" {
				t.Errorf("wrote to %s/%s", namespace, name)
			}
			writes = append(writes, at)
			return failure
		}, clock, slog.New(slog.DiscardHandler))
		go used.Run(t.Context())

		k := key("a", "k", func(*v1alpha1.APIKey) {})
		steps := []struct {
			reason  string
			at      time.Duration
			failure error
			status  time.Duration // status.lastUsedAt, relative to now; 0 for none
			want    bool
		}{
			{"the first use is recorded", 0, errors.New("boom"), 0, true},
			{"a failed write is not retried immediately", 30 * time.Second, nil, 0, false},
			{"a failed write is retried after a minute", time.Minute, nil, 0, true},
			{"a second use within the hour is not recorded", 30 * time.Minute, nil, 0, false},
			{"other replicas' uses count", 90 * time.Minute, nil, time.Hour, false},
			{"a use an hour later is recorded", 2 * time.Hour, nil, time.Hour, true},
		}
		for _, step := range steps {
			clock.SetTime(now.Add(step.at))
			failure = step.failure
			if step.status != 0 {
				k.Status.LastUsedAt = v1alpha1.NewTimePtr(now.Add(step.status))
			}
			writes = nil
			used.Record(k)
			used.Record(k)
			synctest.Wait()
			var want []time.Time
			if step.want {
				want = []time.Time{now.Add(step.at)}
			}
			if diff := cmp.Diff(want, writes); diff != "" {
				t.Errorf("%s: -want +got:\n%s", step.reason, diff)
			}
		}
	})
}

func TestLastUsedNeverWaits(t *testing.T) {
	t.Parallel()
	used := access.NewLastUsed(func(context.Context, string, string, time.Time) error { return nil },
		clocktesting.NewFakePassiveClock(now), slog.New(slog.DiscardHandler))
	for i := range 1000 { // Run is not running, so that the queue fills up
		used.Record(key("a", strconv.Itoa(i), func(*v1alpha1.APIKey) {}))
	}
}
