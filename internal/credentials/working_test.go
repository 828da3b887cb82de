// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// A working copy is found again by its name after a restore, and the admission policies match the name's format.
func TestWorkingName(t *testing.T) {
	named := func(edit func(*v1alpha1.Connection)) string {
		conn := connection()
		conn.Spec.Platform, conn.Spec.AccountID = v1alpha1.PlatformX, "42"
		edit(conn)
		return WorkingName(conn)
	}
	base := named(func(*v1alpha1.Connection) {})
	if !regexp.MustCompile("^herald-credentials-[a-z2-7]{26}$").MatchString(base) {
		t.Errorf("the name is %q", base)
	}
	for reason, tc := range map[string]struct {
		edit func(*v1alpha1.Connection)
		same bool
	}{
		"a restored connection has another UID":      {func(c *v1alpha1.Connection) { c.UID = "u2" }, true},
		"an account connected again, another Secret": {func(c *v1alpha1.Connection) { c.Spec.CredentialsSecretRef.Name = "other" }, true},
		"two connections of an account share it":     {func(c *v1alpha1.Connection) { c.Name = "too" }, true},
		"another account has its own":                {func(c *v1alpha1.Connection) { c.Spec.AccountID = "43" }, false},
		"an id may be the same on two platforms":     {func(c *v1alpha1.Connection) { c.Spec.Platform = v1alpha1.PlatformThreads }, false},
	} {
		if got := named(tc.edit); (got == base) != tc.same {
			t.Errorf("%s: %q and %q", reason, base, got)
		}
	}
}

// TestHashWithoutClient checks that a token's app is not part of the input's hash: earlier versions did not store the
// app, and the hashes in their copies remain valid.
func TestHashWithoutClient(t *testing.T) {
	with := hashOf(secretWith(map[string]string{"accessToken": "a", "clientID": "c", "clientSecret": "h"}))
	if without := hashOf(secretWith(map[string]string{"accessToken": "a"})); with != without || with != hashTexts("a", "", "", "", "") {
		t.Errorf("the hashes are %s and %s", with, without)
	}
}

// TestGrantedAgain checks that a token that a platform returns again for a second consent is a new input, and that an
// older Secret is not. Mastodon has one token per app and account, and returns it again after it was replaced.
func TestGrantedAgain(t *testing.T) {
	at := time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC)
	first, byHand := Input{Hash: "a", GrantedAt: at}, Input{Hash: "b"}
	secret := &corev1.Secret{}
	secret.Annotations = provenance{}.with(first, "c").with(byHand, "c").annotations()
	l := provenanceOf(secret)
	for name, tc := range map[string]struct {
		reason string
		in     Input
		want   Freshness
	}{
		"applied again": {"a tool has the Secret of the first consent", first, Superseded},
		"older":         {"a tool has a copy from before the first consent", Input{Hash: "a", GrantedAt: at.Add(-time.Hour)}, Superseded},
		"by hand":       {"the token was copied from the Secret", Input{Hash: "a"}, Superseded},
		"granted again": {"a user has connected the account again", Input{Hash: "a", GrantedAt: at.Add(time.Second)}, New},
		"present":       {"the input is in use", byHand, Current},
	} {
		if got := l.freshness(tc.in); got != tc.want {
			t.Errorf("%s: %s: got %s, want %s", name, tc.reason, got, tc.want)
		}
	}
	if _, ok := (provenance{}).with(byHand, "c").annotations()[GrantedAnnotation]; ok {
		t.Error("an unknown time is written, which policies of earlier versions do not permit")
	}
}

func TestLineage(t *testing.T) {
	var l provenance
	for i := range 8 {
		l = l.with(Input{Hash: fmt.Sprint("h", i)}, fmt.Sprint("c", i%2))
	}
	for hash, want := range map[string]Freshness{
		"h7": Current, "h6": Superseded, "h2": Superseded, "h1": New, "h9": New, "": New,
	} {
		if got := l.freshness(Input{Hash: hash}); got != want {
			t.Errorf("%q is %s, want %s: the present input and the five before are known", hash, got, want)
		}
	}
	if !slices.Equal(l.users, []string{"c0", "c1"}) {
		t.Errorf("the users are %v", l.users)
	}
	back := l.with(Input{Hash: "h5"}, "c0")
	if back.input != "h5" || !slices.Equal(back.earlier, []string{"h7", "h6", "h4", "h3", "h2"}) {
		t.Errorf("a readopted input must be known once: %+v", back)
	}
	for i := range maxUsers + 10 {
		l = l.usedBy(fmt.Sprint("n", i))
	}
	if last := fmt.Sprint("n", maxUsers+9); len(l.users) != maxUsers || l.users[maxUsers-1] != last {
		t.Errorf("%d users are remembered, up to %s", len(l.users), l.users[len(l.users)-1])
	}
}

// A working copy with many users stays unchanged when any of them uses it: each write makes a version that no other
// Connection's status has.
func TestUseOfMany(t *testing.T) {
	store, _ := newStore(clocktesting.NewFakeClock(noon), interceptor.Funcs{}, secretWith(map[string]string{"accessToken": "a", "refreshToken": "r"}))
	copied := seeded(t, store)
	used := func(n int) (written bool) {
		t.Helper()
		conn := connection()
		conn.Name = fmt.Sprint("n", n)
		before := copied.Version
		var err error
		if copied, err = store.RecordUse(t.Context(), conn, copied); err != nil {
			t.Fatal(err)
		}
		return copied.Version != before
	}
	for n := range maxUsers - 1 { // the Connection that made the copy is listed
		if !used(n) {
			t.Fatalf("use %d is not recorded", n)
		}
	}
	for _, n := range []int{maxUsers, 0, maxUsers + 1, maxUsers} {
		if used(n) {
			t.Errorf("use %d is recorded above the limit of %d", n, maxUsers)
		}
	}
}

// Rewriting a Secret with the same tokens has no effect.
func TestHash(t *testing.T) {
	base := hashOf(secretWith(map[string]string{"accessToken": "a", "refreshToken": "r", "scopes": "s"}))
	for reason, tc := range map[string]struct {
		data map[string]string
		same bool
	}{
		"a file ends in a newline":          {map[string]string{"accessToken": "a\n", "refreshToken": "r", "scopes": "s"}, true},
		"users keep notes next to it":       {map[string]string{"accessToken": "a", "refreshToken": "r", "scopes": "s", "note": "n"}, true},
		"an empty key counts as omitted":    {map[string]string{"accessToken": "a", "refreshToken": "r", "scopes": "s", "expiresAt": ""}, true},
		"another access token":              {map[string]string{"accessToken": "b", "refreshToken": "r", "scopes": "s"}, false},
		"another refresh token":             {map[string]string{"accessToken": "a", "refreshToken": "q", "scopes": "s"}, false},
		"other scopes may change a call":    {map[string]string{"accessToken": "a", "refreshToken": "r", "scopes": "s t"}, false},
		"the delimiter prevents collisions": {map[string]string{"accessToken": "ar", "scopes": "s"}, false},
	} {
		if got := hashOf(secretWith(tc.data)); (got == base) != tc.same {
			t.Errorf("%s: %s and %s", reason, base, got)
		}
	}
}

func TestFind(t *testing.T) {
	given := secretWith(map[string]string{"accessToken": "a", "refreshToken": "r"})
	damaged := func(edit func(*corev1.Secret)) func(*corev1.Secret) { return edit }
	for reason, tc := range map[string]struct {
		input  func(*corev1.Secret)
		copied func(*corev1.Secret)
		conn   func(*v1alpha1.Connection)
		want   Freshness
		known  bool
		err    Reason
	}{
		"the copy is from it": {want: Current, known: true},
		"new tokens":          {input: func(s *corev1.Secret) { s.Data["accessToken"] = []byte("b") }, want: New, known: true},
		"another connection with the same tokens": {conn: func(c *v1alpha1.Connection) { c.Name = "too" }, want: Current, known: true},
		"another connection with tokens of its own": {
			input: func(s *corev1.Secret) { s.Data["accessToken"] = []byte("b") },
			conn:  func(c *v1alpha1.Connection) { c.Name = "too" }, want: New,
		},
		"an immutable input is only read":     {input: func(s *corev1.Secret) { s.Immutable = new(true) }, want: Current, known: true},
		"a user emptied the copy":             {copied: damaged(func(s *corev1.Secret) { s.Data = nil }), err: Invalid},
		"a user made the copy immutable":      {copied: damaged(func(s *corev1.Secret) { s.Immutable = new(true) }), err: Invalid},
		"another Secret has its name":         {copied: damaged(func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }), err: Invalid},
		"an account is withdrawn by deletion": {conn: func(c *v1alpha1.Connection) { c.Spec.CredentialsSecretRef.Name = "gone" }, err: NotFound},
	} {
		t.Run(reason, func(t *testing.T) {
			maker, api := newStore(clocktesting.NewFakeClock(noon), interceptor.Funcs{}, given.DeepCopy())
			seeded(t, maker)
			copied, input, conn := working(t, api), given.DeepCopy(), connection()
			for _, edit := range []func(){
				func() {
					if tc.input != nil {
						tc.input(input)
					}
				},
				func() {
					if tc.copied != nil {
						tc.copied(copied)
					}
				},
				func() {
					if tc.conn != nil {
						tc.conn(conn)
					}
				},
			} {
				edit()
			}
			copied.ResourceVersion = ""
			store, _ := newStore(clocktesting.NewFakeClock(noon), interceptor.Funcs{}, []client.Object{input, copied}...)
			found, err := store.Find(t.Context(), conn)
			if ReasonOf(err) != tc.err || found.Input.Freshness != tc.want && tc.err == "" || found.Known != tc.known {
				t.Errorf("freshness %s, known %t, %v", found.Input.Freshness, found.Known, err)
			}
		})
	}
}

func TestAdopt(t *testing.T) {
	now := clocktesting.NewFakeClock(noon)
	store, api := newStore(now, interceptor.Funcs{}, secretWith(map[string]string{
		"accessToken": "a", "refreshToken": "r", "expiresAt": "2026-11-20T14:00:00Z", "scopes": "s", "clientID": "c", "clientSecret": "h",
	}))
	copied := seeded(t, store)
	if copied.Token.ClientID != "c" || copied.Token.ClientSecret != "h" {
		t.Errorf("the copy has no app to revoke the token with: %+v", copied.Token)
	}
	input := secretWith(map[string]string{"accessToken": "b"})
	must.Succeed(t, api.Update(t.Context(), input))
	found, err := store.Find(t.Context(), connection())
	must.Succeed(t, err)
	adopted, err := store.Adopt(t.Context(), connection(), copied, found.Input)
	must.Succeed(t, err)
	if want := (Token{Access: "b"}); adopted.Token != want {
		t.Errorf("adopted %+v with parts of earlier tokens", adopted.Token)
	}
	if _, err := store.Adopt(t.Context(), connection(), copied, found.Input); ReasonOf(err) != Conflict {
		t.Errorf("got %v, want a conflict: the copy was changed since", err)
	}
	if found, err = store.Find(t.Context(), connection()); err != nil || found.Input.Freshness != Current {
		t.Errorf("the next input is %s, %v", found.Input.Freshness, err)
	}
}

// An earlier version of Herald that renews tokens in the input may be doing so while this one starts.
func TestSeedYieldsToEarlierVersion(t *testing.T) {
	for _, tc := range []struct {
		reason      string
		annotations map[string]string
		may         bool
		wait        time.Duration
	}{
		{"users created the Secret", nil, true, 0},
		{"a process of that version is renewing", map[string]string{ClaimAnnotation: "old " + noon.Add(-time.Minute).Format(time.RFC3339)}, false, 30 * time.Second},
		{"the claim has expired", map[string]string{ClaimAnnotation: "old " + noon.Add(-time.Hour).Format(time.RFC3339)}, false, 90 * time.Second},
		{"the renewal has finished", map[string]string{RenewedAnnotation: noon.Add(-time.Hour).Format(time.RFC3339)}, false, 90 * time.Second},
	} {
		secret := secretWith(map[string]string{"accessToken": "a", "refreshToken": "r"})
		secret.Annotations = tc.annotations
		store, _ := newStore(clocktesting.NewFakeClock(noon), interceptor.Funcs{}, secret)
		copied := seeded(t, store)
		found, err := store.Find(t.Context(), connection())
		must.Succeed(t, err)
		if may, wait := store.MayClaim(connection(), copied, found.Input, 90*time.Second); may != tc.may || wait != tc.wait {
			t.Errorf("%s: %t, %s", tc.reason, may, wait)
		}
	}
}

// A renewed token is not lost if its working copy is deleted in the meantime.
func TestSaveRecreatesTheCopy(t *testing.T) {
	store, api := newStore(clocktesting.NewFakeClock(noon), interceptor.Funcs{}, secretWith(map[string]string{"accessToken": "a", "refreshToken": "r"}))
	copied := seeded(t, store)
	if err := api.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: WorkingName(connection())}}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Save(t.Context(), connection(), Renewal{Token: Token{Access: "a2", Refresh: "r2"}, Before: copied}); err != nil {
		t.Fatal(err)
	}
	found, err := store.Find(t.Context(), connection())
	if err != nil || found.Working.Token.Refresh != "r2" || found.Input.Freshness != Current {
		t.Errorf("found %+v, %v", found, err)
	}
}
