// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// conn returns a connection whose last examination, an hour ago, had the given reason.
func conn(reason string) *v1alpha1.Connection {
	c := &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "acme", UID: "u1", Generation: 1},
		Spec:       v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: "42"},
	}
	if reason == "" {
		return c
	}
	hourAgo := noon.Add(-time.Hour)
	c.Status = v1alpha1.ConnectionStatus{
		ObservedGeneration: 1, LastProbedAt: v1alpha1.NewTimePtr(hourAgo), ConnectedAt: v1alpha1.NewTimePtr(hourAgo.Add(-time.Hour)),
		AccountName: "Acme", Username: "acme", IconURL: "https://example.com/a.png", CredentialsVersion: "7",
	}
	conditions.Apply(&c.Status.Conditions, conditions.Summary{
		Ready: reason == v1alpha1.ReasonConnected, Reason: reason, Message: "as before", Progress: progressOf(reason),
	}, 1, hourAgo)
	return c
}

func readAs(version string) *credentials.Credentials {
	return &credentials.Credentials{Version: version, Token: credentials.Token{Access: "a", ExpiresAt: noon.Add(time.Hour)}}
}

func TestOfFailure(t *testing.T) {
	tests := map[platforms.Class]string{
		platforms.ClassReconnect:   v1alpha1.ReasonRevoked,
		platforms.ClassPermanent:   v1alpha1.ReasonRevoked,
		platforms.ClassRefresh:     v1alpha1.ReasonTokenExpired,
		platforms.ClassRateLimited: v1alpha1.ReasonPlatformUnavailable,
		platforms.ClassQuota:       v1alpha1.ReasonPlatformUnavailable,
		platforms.ClassTransient:   v1alpha1.ReasonPlatformUnavailable,
		platforms.ClassDuplicate:   v1alpha1.ReasonPlatformUnavailable,
		platforms.ClassUnknown:     v1alpha1.ReasonPlatformUnavailable,
		platforms.ClassRestricted:  v1alpha1.ReasonAccountRestricted,
	}
	for class, want := range tests {
		if got := failureOutcome(platforms.Errorf(class, "what it says")); got.reason != want || !got.probed || !strings.HasPrefix(got.message, "what it says") {
			t.Errorf("%s: got %+v, want reason %s and the platform's message", class, got, want)
		}
	}
}

// TestUnlistedFailure refuses a probe with an unlisted code: the account stays connected.
func TestUnlistedFailure(t *testing.T) {
	for _, class := range []platforms.Class{platforms.ClassPermanent, platforms.ClassUnknown} {
		if got := failureOutcome(&platforms.Error{Class: class, Problem: "code 999", Code: "999", Unlisted: true}); got.reason != v1alpha1.ReasonPlatformUnavailable {
			t.Errorf("%s: got %+v", class, got)
		}
	}
}

// TestUnlistedFailuresAreCounted checks that only unlisted codes are counted.
func TestUnlistedFailuresAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	e := &examination{examiner: &examiner{unlisted: unlisted.New(registry)}, conn: conn("")}
	for _, err := range []error{
		&platforms.Error{Class: platforms.ClassUnknown, Problem: "code 999", Code: "999", Unlisted: true},
		&platforms.Error{Class: platforms.ClassReconnect, Problem: "a permission", Code: "220"}, errors.New("no answer"),
	} {
		if failure := e.recordError(unlisted.Identify, err); failure == nil || failure.Problem == "" {
			t.Errorf("%v became %+v", err, failure)
		}
	}
	if n, err := testutil.GatherAndCount(registry); n != 1 || err != nil {
		t.Errorf("%d codes are counted, %v", n, err)
	}
}

func TestApply(t *testing.T) {
	identity := &platforms.Identity{AccountID: "42", DisplayName: "Acme Inc", Username: "acmeinc", IconURL: "https://example.com/b.png"}
	good := outcome{probed: true, reason: v1alpha1.ReasonConnected, message: "connected as @acmeinc", loaded: "8", read: readAs("8"), identity: identity}
	hourAgo, earlier := noon.Add(-time.Hour), noon.Add(-2*time.Hour)
	type want struct {
		Ready, Reason, Message string
		Stalled, Reconciling   bool
		Name, Version, Handled string
		Connected, Probed      time.Time
		Expires                time.Time
	}
	for name, tc := range map[string]struct {
		reason string
		before *v1alpha1.Connection
		found  outcome
		probe  string
		want   want
	}{
		"first contact": {
			"all fields are set", conn(""), good, "p1",
			want{Ready: "True", Reason: "Connected", Message: "connected as @acmeinc", Name: "Acme Inc", Version: "8", Handled: "p1", Connected: noon, Probed: noon, Expires: noon.Add(time.Hour)},
		},
		"the problem remains": {
			"connectedAt does not change when only the token was renewed", conn("Connected"), good, "",
			want{Ready: "True", Reason: "Connected", Message: "connected as @acmeinc", Name: "Acme Inc", Version: "8", Connected: earlier, Probed: noon, Expires: noon.Add(time.Hour)},
		},
		"other credentials": {
			"a reconnect resets connectedAt", changed(conn("Connected")), good, "",
			want{Ready: "True", Reason: "Connected", Message: "connected as @acmeinc", Name: "Acme Inc", Version: "8", Connected: noon, Probed: noon, Expires: noon.Add(time.Hour)},
		},
		"reconnected in place": {
			"a new token in the same Secret ends the problem", conn("Revoked"), good, "",
			want{Ready: "True", Reason: "Connected", Message: "connected as @acmeinc", Name: "Acme Inc", Version: "8", Connected: noon, Probed: noon, Expires: noon.Add(time.Hour)},
		},
		"no answer": {
			"known values remain", conn("Connected"),
			outcome{probed: true, reason: v1alpha1.ReasonPlatformUnavailable, message: "X could not be reached", loaded: "7", read: readAs("7")},
			"p1",
			want{Ready: "False", Reason: "PlatformUnavailable", Message: "X could not be reached", Reconciling: true, Name: "Acme", Version: "7", Handled: "p1", Connected: earlier, Probed: noon, Expires: noon.Add(time.Hour)},
		},
		"no answer about a revoked account": {
			"an outage does not clear a revocation", conn("Revoked"),
			outcome{probed: true, reason: v1alpha1.ReasonPlatformUnavailable, message: "X could not be reached", loaded: "7", read: readAs("9")},
			"p1",
			want{Ready: "False", Reason: "Revoked", Message: "as before", Stalled: true, Name: "Acme", Version: "9", Handled: "p1", Connected: earlier, Probed: noon, Expires: noon.Add(time.Hour)},
		},
		"no answer about new credentials": {
			"the old state belonged to the old credentials", conn("Revoked"),
			outcome{probed: true, reason: v1alpha1.ReasonPlatformUnavailable, message: "X could not be reached", loaded: "8", read: readAs("8")},
			"",
			want{Ready: "False", Reason: "PlatformUnavailable", Message: "X could not be reached", Reconciling: true, Name: "Acme", Version: "8", Connected: earlier, Probed: noon, Expires: noon.Add(time.Hour)},
		},
		"Secret gone": {
			"no version is in use; the platform was not queried, but the request is marked as handled", conn("Connected"),
			outcome{reason: v1alpha1.ReasonCredentialsNotFound, message: "no Secret"},
			"p1",
			want{Ready: "False", Reason: "CredentialsNotFound", Message: "no Secret", Reconciling: true, Name: "Acme", Handled: "p1", Connected: earlier, Probed: hourAgo},
		},
		"revoked": {
			"a user has to act", conn("Connected"),
			outcome{probed: true, reason: v1alpha1.ReasonRevoked, message: "connect again", loaded: "7", read: readAs("7")},
			"",
			want{Ready: "False", Reason: "Revoked", Message: "connect again", Stalled: true, Name: "Acme", Version: "7", Connected: earlier, Probed: noon, Expires: noon.Add(time.Hour)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := tc.before
			apply(c, tc.found, tc.probe, noon)
			ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
			got := want{
				Ready: string(ready.Status), Reason: ready.Reason, Message: ready.Message,
				Stalled:     meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionStalled),
				Reconciling: meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReconciling),
				Name:        c.Status.AccountName, Version: c.Status.CredentialsVersion, Handled: c.Status.LastHandledProbe,
				Connected: instant(c.Status.ConnectedAt), Probed: instant(c.Status.LastProbedAt), Expires: instant(c.Status.TokenExpiresAt),
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if c.Status.ObservedGeneration != c.Generation || ready.ObservedGeneration != c.Generation {
				t.Error("the status does not speak of the present generation")
			}
		})
	}
}

// changed returns a connection whose spec has changed since its examination.
func changed(c *v1alpha1.Connection) *v1alpha1.Connection {
	c.Generation++
	return c
}

func instant(t *v1alpha1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// The schema rejects an invalid status as a whole, and the connection would then have no status at all.
func TestApplyFitsTheSchema(t *testing.T) {
	c := conn("")
	read := readAs("8")
	read.Token.ExpiresAt = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	apply(c, outcome{
		probed: true, reason: v1alpha1.ReasonConnected, loaded: "8", read: read,
		identity: &platforms.Identity{DisplayName: strings.Repeat("ä", 600), Username: strings.Repeat("u", 600), IconURL: "https://example.com/" + strings.Repeat("i", 3000)},
	}, strings.Repeat("p", 300), noon)
	s := c.Status
	if n := len([]rune(s.AccountName)); n != 512 || len(s.Username) != 512 || s.IconURL != "" || len(s.LastHandledProbe) != 256 || s.TokenExpiresAt != nil {
		t.Errorf("lengths %d, %d, %d, %d, end %v: too long for the schema, or cut without need",
			n, len(s.Username), len(s.IconURL), len(s.LastHandledProbe), s.TokenExpiresAt)
	}
}

func TestOfIdentity(t *testing.T) {
	c := conn("")
	if got := identityOutcome(c, platforms.Identity{AccountID: "42", Username: "acme"}); got.reason != v1alpha1.ReasonConnected || got.message != "connected as @acme" {
		t.Errorf("got %+v", got)
	}
	got := identityOutcome(c, platforms.Identity{AccountID: "43", Username: "evil"})
	if got.reason != v1alpha1.ReasonAccountMismatch || got.identity != nil || !strings.Contains(got.message, `"43"`) || !strings.Contains(got.message, `"42"`) {
		t.Errorf("another account's token must not be used or displayed: %+v", got)
	}
}

func TestOfCredentials(t *testing.T) {
	for reason, want := range map[credentials.Reason]string{
		credentials.NotFound:    v1alpha1.ReasonCredentialsNotFound,
		credentials.Invalid:     v1alpha1.ReasonCredentialsInvalid,
		credentials.Conflict:    v1alpha1.ReasonCredentialsUnavailable,
		credentials.Unavailable: v1alpha1.ReasonCredentialsUnavailable,
	} {
		if got := credentialsOutcome(&credentials.Error{Reason: reason, Message: "m"}); got.reason != want || got.message != "m" || got.probed {
			t.Errorf("%s: got %+v, want %s", reason, got, want)
		}
	}
}

func TestApplyVerified(t *testing.T) {
	before := func(version, verified string) v1alpha1.ConnectionStatus {
		return v1alpha1.ConnectionStatus{CredentialsVersion: version, VerifiedVersion: verified}
	}
	// An earlier version of Herald left this status, without the confirmed version.
	earlier := func(reason string) v1alpha1.ConnectionStatus {
		status := before("1", "")
		conditions.Apply(&status.Conditions, conditions.Summary{Ready: reason == v1alpha1.ReasonConnected, Reason: reason}, 1, noon)
		return status
	}
	read := func(version string) *credentials.Credentials {
		return &credentials.Credentials{Version: version, Token: credentials.Token{Access: "a"}}
	}
	down := func(loaded, now string, known bool) outcome {
		return outcome{probed: true, reason: v1alpha1.ReasonPlatformUnavailable, loaded: loaded, known: known, read: read(now)}
	}
	for _, tc := range []struct {
		reason string
		before v1alpha1.ConnectionStatus
		found  outcome
		want   bool
	}{
		{"the platform identified the token's account", before("", ""), outcome{reason: v1alpha1.ReasonConnected, identity: &platforms.Identity{}, loaded: "1", read: read("1")}, true},
		{"the platform never identified the account", before("", ""), down("1", "1", false), false},
		{"the platform has not identified the account since the last check", before("1", ""), down("1", "1", true), false},
		{"the platform identified the account before", before("1", "1"), down("1", "1", true), true},
		{"Herald renewed the token since", before("1", "1"), down("1", "2", true), true},
		{"a user replaced the token", before("1", "1"), down("2", "2", false), false},
		{"a user replaced the token during the check", before("1", "1"), down("1", "3", false), false},
		{
			"the platform identified another account", before("1", "1"),
			outcome{probed: true, reason: v1alpha1.ReasonAccountMismatch, loaded: "1", known: true, read: read("1")},
			false,
		},
		{"the Secret does not exist", before("1", "1"), outcome{reason: v1alpha1.ReasonCredentialsNotFound}, false},
		{"before an upgrade, these credentials connected it", earlier(v1alpha1.ReasonConnected), down("1", "1", true), true},
		{"before an upgrade, other credentials connected it", earlier(v1alpha1.ReasonConnected), down("2", "2", false), false},
		{"before an upgrade, the platform did not identify the account", earlier(v1alpha1.ReasonPlatformUnavailable), down("1", "1", true), false},
	} {
		conn := &v1alpha1.Connection{Status: tc.before}
		apply(conn, tc.found, "", noon)
		if got := conn.Status.Verified(); got != tc.want {
			t.Errorf("%s: verified %t, want %t: %+v", tc.reason, got, tc.want, conn.Status)
		}
	}
}

func TestApplyApp(t *testing.T) {
	held := v1alpha1.NewTimePtr(noon.Add(time.Hour))
	of := func(app string) outcome {
		return outcome{reason: v1alpha1.ReasonPlatformUnavailable, loaded: "1", read: &credentials.Credentials{Version: "1", Token: credentials.Token{App: app}}}
	}
	for _, tc := range []struct {
		reason string
		before string
		found  outcome
		want   string
		held   bool
	}{
		{"the mark names the app", "", of("herald"), "herald", false},
		{"the app's limit remains", "herald", of("herald"), "herald", true},
		{"a token of another app is not subject to Herald's limit", "herald", of(""), "", false},
		{"a deleted Secret does not have an app", "herald", outcome{reason: v1alpha1.ReasonCredentialsNotFound}, "", false},
		{"an unreadable Secret may become readable again", "herald", outcome{reason: v1alpha1.ReasonCredentialsUnavailable}, "herald", true},
	} {
		conn := &v1alpha1.Connection{Status: v1alpha1.ConnectionStatus{App: tc.before}}
		if tc.before != "" {
			conn.Status.AppRateLimitedUntil = held
		}
		apply(conn, tc.found, "", noon)
		if got := conn.Status.AppRateLimitedUntil != nil; conn.Status.App != tc.want || got != tc.held {
			t.Errorf("%s: app %q, limited %t, want %q, %t", tc.reason, conn.Status.App, got, tc.want, tc.held)
		}
	}
}
