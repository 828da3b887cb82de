// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apikeys_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/apikeys"
)

var now = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func key(namespace, name string, edit func(k *v1alpha1.APIKey)) *v1alpha1.APIKey {
	k := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name),
		CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
	}}
	edit(k)
	return k
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	later := metav1.NewTime(now.Add(-time.Minute))
	tests := map[string]struct {
		reason  string
		keys    []*v1alpha1.APIKey
		token   string
		want    string
		wantErr error
	}{
		"FromSpec": {
			reason: "a token set at creation works before the manager has seen the key",
			keys:   []*v1alpha1.APIKey{key("a", "k", func(k *v1alpha1.APIKey) { k.Spec.TokenSHA256 = digest("t") })},
			token:  "t", want: "a/k",
		},
		"FromStatus": {
			reason: "a token made by the manager",
			keys:   []*v1alpha1.APIKey{key("a", "k", func(k *v1alpha1.APIKey) { k.Status.TokenSHA256 = digest("t") })},
			token:  "t", want: "a/k",
		},
		"Unknown": {
			reason: "no key has this token",
			keys:   []*v1alpha1.APIKey{key("a", "k", func(k *v1alpha1.APIKey) { k.Spec.TokenSHA256 = digest("t") })},
			token:  "u", wantErr: apikeys.ErrUnknown,
		},
		"HashIsNoToken": {
			reason: "the stored hash, which others can read, is not a token",
			keys:   []*v1alpha1.APIKey{key("a", "k", func(k *v1alpha1.APIKey) { k.Spec.TokenSHA256 = digest("t") })},
			token:  digest("t"), wantErr: apikeys.ErrUnknown,
		},
		"KeyWithoutToken": {
			reason: "a key whose token is not made yet opens nothing, not even to an empty token",
			keys:   []*v1alpha1.APIKey{key("a", "k", func(*v1alpha1.APIKey) {})},
			token:  "", wantErr: apikeys.ErrUnknown,
		},
		"Revoked": {
			reason: "a revoked key opens nothing",
			keys: []*v1alpha1.APIKey{key("a", "k", func(k *v1alpha1.APIKey) {
				k.Spec.TokenSHA256, k.Spec.Revoked = digest("t"), true
			})},
			token: "t", wantErr: apikeys.ErrRevoked,
		},
		"BeingDeleted": {
			reason: "deleting a key ends it although finalizers may keep the object",
			keys: []*v1alpha1.APIKey{key("a", "k", func(k *v1alpha1.APIKey) {
				k.Spec.TokenSHA256, k.DeletionTimestamp = digest("t"), &later
			})},
			token: "t", wantErr: apikeys.ErrRevoked,
		},
		"NotExpiredYet": {
			reason: "a key works until its time",
			keys: []*v1alpha1.APIKey{key("a", "k", func(k *v1alpha1.APIKey) {
				k.Spec.TokenSHA256, k.Spec.ExpiresAt = digest("t"), v1alpha1.NewTimePtr(now.Add(time.Millisecond))
			})},
			token: "t", want: "a/k",
		},
		"Expired": {
			reason: "and not from its time on",
			keys: []*v1alpha1.APIKey{key("a", "k", func(k *v1alpha1.APIKey) {
				k.Spec.TokenSHA256, k.Spec.ExpiresAt = digest("t"), v1alpha1.NewTimePtr(now)
			})},
			token: "t", wantErr: apikeys.ErrExpired,
		},
		"CopiedHash": {
			reason: "a younger key with a copied hash does not take over the token",
			keys: []*v1alpha1.APIKey{
				key("a-thief", "k", func(k *v1alpha1.APIKey) { k.Spec.TokenSHA256, k.CreationTimestamp = digest("t"), later }),
				key("owner", "k", func(k *v1alpha1.APIKey) { k.Spec.TokenSHA256 = digest("t") }),
			},
			token: "t", want: "owner/k",
		},
		"CopiedHashOfRevoked": {
			reason: "a revoked token stays revoked although a younger key carries its hash",
			keys: []*v1alpha1.APIKey{
				key("a-thief", "k", func(k *v1alpha1.APIKey) { k.Spec.TokenSHA256, k.CreationTimestamp = digest("t"), later }),
				key("owner", "k", func(k *v1alpha1.APIKey) { k.Spec.TokenSHA256, k.Spec.Revoked = digest("t"), true }),
			},
			token: "t", wantErr: apikeys.ErrRevoked,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, apikeys.Indexers())
			for _, k := range tc.keys {
				if err := indexer.Add(k); err != nil {
					t.Fatal(err)
				}
			}
			got, err := apikeys.NewCache(indexer, clocktesting.NewFakePassiveClock(now)).Authenticate(tc.token)
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("%s: error %v, want %v", tc.reason, err, tc.wantErr)
			}
			if err == nil && got.Namespace+"/"+got.Name != tc.want {
				t.Errorf("%s: got key %s/%s, want %s", tc.reason, got.Namespace, got.Name, tc.want)
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
		used := apikeys.NewLastUsed(func(_ context.Context, namespace, name string, at time.Time) error {
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
			status  time.Duration // what status.lastUsedAt says; 0 for nothing
			want    bool
		}{
			{"the first use is written", 0, errors.New("boom"), 0, true},
			{"a failed write is not repeated at once", 30 * time.Second, nil, 0, false},
			{"but after a minute", time.Minute, nil, 0, true},
			{"a second use within the hour is not written", 30 * time.Minute, nil, 0, false},
			{"what another replica wrote counts", 90 * time.Minute, nil, time.Hour, false},
			{"an hour later it is written again", 2 * time.Hour, nil, time.Hour, true},
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
	used := apikeys.NewLastUsed(func(context.Context, string, string, time.Time) error { return nil },
		clocktesting.NewFakePassiveClock(now), slog.New(slog.DiscardHandler))
	for i := range 1000 { // nobody runs it, so the queue fills up
		used.Record(key("a", strconv.Itoa(i), func(*v1alpha1.APIKey) {}))
	}
}
