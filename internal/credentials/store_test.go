// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/must"
)

var (
	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	// One must convert to the other.
	_ = platforms.Token(Token{})
)

func connection() *v1alpha1.Connection {
	return &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "acme", UID: "u1"},
		Spec:       v1alpha1.ConnectionSpec{CredentialsSecretRef: v1alpha1.LocalReference{Name: "acme-x"}},
	}
}

func secretWith(data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "acme-x"}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

func newStore(c clock.Clock, funcs interceptor.Funcs, objects ...client.Object) (*Store, client.Client) {
	api := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return NewStore(api, api, c, "me", nil), api
}

// seeded returns the working copy that a Store makes from the connection's Secret.
func seeded(t *testing.T, store *Store) Credentials {
	t.Helper()
	found, err := store.Find(t.Context(), connection())
	if err != nil || found.Input.Err != nil {
		t.Fatal(err, found.Input.Err)
	}
	created, err := store.Seed(t.Context(), connection(), found.Input)
	must.Succeed(t, err)
	return created
}

// working reads the Secret of the working copy.
func working(t *testing.T, api client.Client) *corev1.Secret {
	t.Helper()
	var secret corev1.Secret
	must.Succeed(t, api.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: WorkingName(connection())}, &secret))
	return &secret
}

func TestLoad(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		secret *corev1.Secret
		want   Token
		err    Reason
		key    string
	}{
		"everything": {
			reason: "the keys are read",
			secret: secretWith(map[string]string{"accessToken": "a", "refreshToken": "r", "expiresAt": "2026-12-01T10:00:00+01:00", "scopes": "s1 s2"}),
			want:   Token{Access: "a", Refresh: "r", Scopes: "s1 s2", ExpiresAt: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)},
		},
		"the least":         {reason: "an access token suffices", secret: secretWith(map[string]string{"accessToken": "a"}), want: Token{Access: "a"}},
		"newlines":          {reason: "files end in a newline", secret: secretWith(map[string]string{"accessToken": "a\n", "expiresAt": "2026-11-20T12:00:00Z\n"}), want: Token{Access: "a", ExpiresAt: noon}},
		"no Secret":         {reason: "the Secret may be created later", err: NotFound},
		"no access token":   {reason: "the access token is missing", secret: secretWith(map[string]string{"refreshToken": "r"}), err: Invalid, key: "accessToken"},
		"two tokens in one": {reason: "a header could not carry it", secret: secretWith(map[string]string{"accessToken": "a b"}), err: Invalid, key: "accessToken"},
		"not ASCII":         {reason: "a header could not carry it", secret: secretWith(map[string]string{"accessToken": "a", "refreshToken": "ä"}), err: Invalid, key: "refreshToken"},
		"a date":            {reason: "a date without a time", secret: secretWith(map[string]string{"accessToken": "a", "expiresAt": "2026-12-01"}), err: Invalid, key: "expiresAt"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.secret != nil {
				objects = append(objects, tc.secret.DeepCopy())
			}
			store, _ := newStore(clock.RealClock{}, interceptor.Funcs{}, objects...)
			got, err := store.Load(t.Context(), connection())
			if diff := cmp.Diff(tc.want, got.Token); diff != "" || ReasonOf(err) != tc.err {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if err == nil && got.Version == "" {
				t.Error("the version is missing")
			}
			if failure, ok := errors.AsType[*Error](err); ok && (failure.Key != tc.key || !strings.Contains(failure.Message, `"acme-x"`)) {
				t.Errorf("key %q in message %q; want %q and the Secret's name", failure.Key, failure.Message, tc.key)
			}
		})
	}
}

func TestLoadUnavailable(t *testing.T) {
	store, _ := newStore(clock.RealClock{}, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewServiceUnavailable("no etcd")
		},
	})
	if _, err := store.Load(t.Context(), connection()); ReasonOf(err) != Unavailable {
		t.Errorf("got %v, want Unavailable: a failure of the API server is not a problem of the Secret", err)
	}
}

func TestClaim(t *testing.T) {
	now := clocktesting.NewFakeClock(noon)
	store, api := newStore(now, interceptor.Funcs{}, secretWith(map[string]string{"accessToken": "a", "refreshToken": "r"}))
	read := seeded(t, store)
	if _, err := store.Claim(t.Context(), connection(), read.Version); err != nil {
		t.Fatalf("the first claim must win: %v", err)
	}
	other := NewStore(api, api, now, "an other", nil)
	if _, err := other.Claim(t.Context(), connection(), read.Version); ReasonOf(err) != Conflict {
		t.Errorf("got %v, want Conflict: another manager read the same version", err)
	}
	claimed, err := other.Load(t.Context(), connection())
	must.Succeed(t, err)
	if may, _ := store.MayClaim(connection(), claimed, Input{}, time.Minute); !may {
		t.Error("the claim's owner may continue")
	}
	now.Step(time.Hour)
	if may, wait := other.MayClaim(connection(), claimed, Input{}, time.Minute); may || wait != time.Minute {
		t.Errorf("another process must wait for a minute after it sees the claim, since the Kubernetes API was unavailable for both; got %v, %v", may, wait)
	}
	now.Step(time.Minute)
	if may, _ := other.MayClaim(connection(), claimed, Input{}, time.Minute); !may {
		t.Error("an expired claim must not block others")
	}
	if _, err := other.Claim(t.Context(), connection(), claimed.Version); err != nil {
		t.Errorf("an expired claim must be replaceable: %v", err)
	}
}

// A process that restarted with the same holder continues its claims; the token that the previous process obtained may
// be in the folder for unsaved tokens.
func TestInherited(t *testing.T) {
	now := clocktesting.NewFakeClock(noon)
	store, api := newStore(now, interceptor.Funcs{}, secretWith(map[string]string{"accessToken": "a", "refreshToken": "r"}))
	read := seeded(t, store)
	if store.Inherited(connection(), read) {
		t.Error("the token has no claim")
	}
	if _, err := store.Claim(t.Context(), connection(), read.Version); err != nil {
		t.Fatal(err)
	}
	claimed, err := store.Working(t.Context(), connection())
	must.Succeed(t, err)
	for reason, tc := range map[string]struct {
		store *Store
		want  bool
	}{
		"the owner of the claim knows its result":     {store, false},
		"the next process of its name does not renew": {NewStore(api, api, now, "me", nil), true},
		"another's claim is waited for":               {NewStore(api, api, now, "an other", nil), false},
	} {
		if got := tc.store.Inherited(connection(), claimed); got != tc.want {
			t.Errorf("%s: got %t", reason, got)
		}
	}
}

func TestSave(t *testing.T) {
	secret := secretWith(map[string]string{"accessToken": "a1", "refreshToken": "r1", "expiresAt": "2026-11-20T12:00:00Z"})
	for name, tc := range map[string]struct {
		reason string
		token  Token
		want   map[string]string
	}{
		"rotated": {
			"all new values are stored, and other keys remain",
			Token{Access: "a2", Refresh: "r2", ExpiresAt: noon.Add(2 * time.Hour), Scopes: "s"},
			map[string]string{"accessToken": "a2", "refreshToken": "r2", "expiresAt": "2026-11-20T14:00:00Z", "scopes": "s", "note": "mine"},
		},
		"not rotated": {
			"a missing refresh token does not replace one; an unknown expiry is removed",
			Token{Access: "a2"},
			map[string]string{"accessToken": "a2", "refreshToken": "r1", "note": "mine"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, api := newStore(clocktesting.NewFakeClock(noon), interceptor.Funcs{}, secret.DeepCopy())
			seeded(t, store)
			theirs := working(t, api)
			theirs.Labels["app"], theirs.Data["note"] = "acme", []byte("mine")
			must.Succeed(t, api.Update(t.Context(), theirs))
			read, err := store.Load(t.Context(), connection())
			must.Succeed(t, err)
			if read.Version, err = store.Claim(t.Context(), connection(), read.Version); err != nil {
				t.Fatal(err)
			}
			version, err := store.Save(t.Context(), connection(), Renewal{Token: tc.token, Before: read})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			stored := working(t, api)
			got := map[string]string{}
			for k, v := range stored.Data {
				got[k] = string(v)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			after, err := store.Load(t.Context(), connection())
			if err != nil || after.ClaimedBy != "" || !after.RenewedAt.Equal(noon) || after.Lifetime() != max(0, tc.token.ExpiresAt.Sub(noon)) {
				t.Errorf("read back %+v, %v, want no claim and the time of the renewal", after, err)
			}
			if stored.ResourceVersion != version || stored.Labels["app"] != "acme" {
				t.Errorf("version %q (returned %q), labels %v: other tools' metadata must remain", stored.ResourceVersion, version, stored.Labels)
			}
		})
	}
}

func TestSaveWithErrors(t *testing.T) {
	down := apierrors.NewServiceUnavailable("down")
	for name, tc := range map[string]struct {
		reason string
		patch  func(try int, do func() error) error
		tries  int
		want   Reason
	}{
		"outage": {
			"a renewed token is returned again until the API server is available",
			func(try int, do func() error) error {
				if try < 8 {
					return down
				}
				return do()
			}, 8, "",
		},
		"lost answer": {
			"a write whose response was lost is recognised as Herald's own",
			func(try int, do func() error) error {
				if err := do(); try > 1 {
					return err
				}
				return down
			}, 2, "",
		},
		"changed by another writer": {
			"another writer's token is not overwritten",
			func(int, func() error) error {
				return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "acme-x", errors.New("changed"))
			}, 1, Conflict,
		},
		"outage without end": {
			"the caller's context ends it",
			func(int, func() error) error { return down }, 0, Unavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				intercept := func(ctx context.Context, api client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
					tries++
					return tc.patch(tries, func() error { return api.Patch(ctx, obj, p, opts...) })
				}
				store, _ := newStore(clock.RealClock{}, interceptor.Funcs{Patch: intercept}, secretWith(map[string]string{"accessToken": "a1", "refreshToken": "r1"}))
				read := seeded(t, store)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				version, err := store.Save(ctx, connection(), Renewal{Token: Token{Access: "a2", Refresh: "r2"}, Before: read})
				if ReasonOf(err) != tc.want || tc.tries != 0 && tries != tc.tries || tc.tries == 0 && tries < 10 {
					t.Errorf("%s: got %v after %d tries", tc.reason, err, tries)
				}
				stored, loadErr := store.Load(t.Context(), connection())
				if loadErr != nil {
					t.Fatal(loadErr)
				}
				if tc.want == "" && (stored.Token.Refresh != "r2" || stored.Version != version) {
					t.Errorf("%s: stored %q at version %s, returned %s", tc.reason, stored.Token.Refresh, stored.Version, version)
				}
				if err != nil && (strings.Contains(err.Error(), "a2") || strings.Contains(err.Error(), "r2")) {
					t.Errorf("the message contains a token: %v", err)
				}
			})
		})
	}
}

func TestRefreshTokenEnds(t *testing.T) {
	ends := noon.Add(180 * 24 * time.Hour)
	store, _ := newStore(clocktesting.NewFakeClock(noon), interceptor.Funcs{}, secretWith(map[string]string{
		"accessToken": "a", "refreshToken": "r", "refreshExpiresAt": ends.Format(time.RFC3339),
	}))
	seeded(t, store)
	for _, tc := range []struct {
		reason  string
		renewed Token
		want    time.Time
	}{
		{"a new refresh token has a new expiry", Token{Access: "a2", Refresh: "r2", RefreshExpiresAt: ends.Add(time.Hour)}, ends.Add(time.Hour)},
		{"the old expiry does not apply to a new token", Token{Access: "a3", Refresh: "r3"}, time.Time{}},
	} {
		read, err := store.Load(t.Context(), connection())
		must.Succeed(t, err)
		if _, err := store.Save(t.Context(), connection(), Renewal{Token: tc.renewed, Before: read}); err != nil {
			t.Fatal(err)
		}
		if read, err = store.Load(t.Context(), connection()); err != nil || !read.Token.RefreshExpiresAt.Equal(tc.want) {
			t.Errorf("%s: got %v, %v", tc.reason, read.Token.RefreshExpiresAt, err)
		}
	}
}

func TestRefreshTokenEndsAtNoTime(t *testing.T) {
	store, _ := newStore(clock.RealClock{}, interceptor.Funcs{}, secretWith(map[string]string{"accessToken": "a", "refreshExpiresAt": "next year"}))
	_, err := store.Load(t.Context(), connection())
	if e, ok := errors.AsType[*Error](err); !ok || e.Reason != Invalid || e.Key != "refreshExpiresAt" {
		t.Errorf("got %v, want the key that is wrong", err)
	}
}

func TestMark(t *testing.T) {
	apps := Apps{v1alpha1.PlatformX: {ID: "herald", Secret: func() string { return "s" }}}
	for name, tc := range map[string]struct {
		reason string
		token  Token
		want   string
	}{
		"of the app":       {"a renewed token has its app's mark", Token{Access: "a2", Refresh: "r2", App: "herald"}, "herald"},
		"of any app":       {"tokens from users may belong to any app", Token{Access: "a2", Refresh: "r2"}, ""},
		"of an app before": {"a token of another of the installation's apps has another mark", Token{Access: "a2", Refresh: "r2", App: "old"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakeClock(noon)
			_, api := newStore(now, interceptor.Funcs{}, secretWith(map[string]string{"accessToken": "a", "refreshToken": "r"}))
			store := NewStore(api, api, now, "me", apps)
			conn := connection()
			conn.Spec.Platform = v1alpha1.PlatformX
			found, err := store.Find(t.Context(), conn)
			if err != nil || found.Input.Token.App != "" {
				t.Fatalf("a Secret created by users has the app %q: %v", found.Input.Token.App, err)
			}
			before, err := store.Seed(t.Context(), conn, found.Input)
			must.Succeed(t, err)
			if _, err := store.Save(t.Context(), conn, Renewal{Token: tc.token, Before: before}); err != nil {
				t.Fatal(err)
			}
			after, err := store.Load(t.Context(), conn)
			if err != nil || after.Token.App != tc.want {
				t.Errorf("%s: it is of app %q, want %q: %v", tc.reason, after.Token.App, tc.want, err)
			}
		})
	}
}
