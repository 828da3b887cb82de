// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/posting/plan"
)

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Known":    {"the key acts for its team", nil, ""},
		"Mistyped": {"the client has to copy the key again", access.ErrKeyMalformed, "UNAUTHORIZED"},
		"Unknown":  {"the client has to use another key", access.ErrKeyUnknown, "UNAUTHORIZED"},
		"Revoked":  {"the client has to use another key", access.ErrKeyRevoked, "UNAUTHORIZED"},
		"Expired":  {"the client has to use another key", access.ErrKeyExpired, "UNAUTHORIZED"},
		"Trouble":  {"the error is Herald's own", errors.New("boom"), "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, used := service(&posts{}, &connections{}), ""
			s.Key = func(token string) (*v1alpha1.APIKey, error) {
				if tc.err != nil {
					return nil, tc.err
				}
				return &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: "of " + token, Name: "k"}}, nil
			}
			s.Used = func(key *v1alpha1.APIKey) { used = key.Name }
			got, err := s.Authenticate("token")
			want, wantUsed := bridge.Caller{}, ""
			if tc.want == "" {
				want, wantUsed = bridge.Caller{Namespace: "of token", Key: "k"}, "k"
			}
			if code(err) != tc.want || !cmp.Equal(got, want) || used != wantUsed {
				t.Errorf("%s: %+v, %v, used %q; want %+v, %q, %q", tc.reason, got, err, used, want, tc.want, wantUsed)
			}
		})
	}
}

// TestAuthenticateWithStaleCaches verifies that no caller is served while the watches may be stale.
func TestAuthenticateWithStaleCaches(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		current func() error
		want    error
	}{
		"the caches are always current":       {nil, nil},
		"the caches are current":              {func() error { return nil }, nil},
		"the key may have been revoked since": {func() error { return bridge.ErrBehind }, bridge.ErrBehind},
	} {
		used := 0
		s := bridge.New(bridge.Config{
			Key:     func(string) (*v1alpha1.APIKey, error) { return applied(), nil },
			Current: tc.current, Used: func(*v1alpha1.APIKey) { used++ },
		})
		who, err := s.Authenticate("token")
		if !errors.Is(err, tc.want) || (err == nil) != (who.Key == applied().Name) || (err == nil) != (used == 1) {
			t.Errorf("%s: %+v, %v, used %d times", reason, who, err, used)
		}
	}
}

func TestAgentName(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("a", 80)
	for reason, tc := range map[string]struct{ name, want string }{
		"an ordinary name":                        {"Claude Code", "Claude Code"},
		"spaces collapse to one, and are trimmed": {" \tClaude \n Code ", "Claude Code"},
		"invisible characters":                    {"Cl\u200ba\ufe0fude\x00\xff", "Claude"},
		"the longest name":                        {longest, longest},
		"a longer name":                           {longest + "a", longest + "…"},
		"a blank at the end of the cut":           {longest[1:] + " bc", longest[1:] + "…"},
	} {
		if got := bridge.AgentName(tc.name); got != tc.want {
			t.Errorf("%s: got %q, want %q", reason, got, tc.want)
		}
	}
}

func TestRequireSubscription(t *testing.T) {
	t.Parallel()
	week := 7 * 24 * time.Hour
	for name, tc := range map[string]struct {
		state     v1alpha1.SubscriptionState
		trialEnds *v1alpha1.Time
		want      string
		// age is the Team's age; zero means an old one.
		age time.Duration
	}{
		"Active":         {v1alpha1.SubscriptionActive, nil, "", 0},
		"Trial":          {v1alpha1.SubscriptionTrialing, v1alpha1.NewTimePtr(now.Add(time.Millisecond)), "", 0},
		"TrialEnds":      {v1alpha1.SubscriptionTrialing, v1alpha1.NewTimePtr(now), "trial has ended", 0},
		"TrialUnbounded": {v1alpha1.SubscriptionTrialing, nil, "trial has ended", 0},
		"FirstWeek":      {v1alpha1.SubscriptionTrialing, nil, "", week - time.Second},
		"AfterAWeek":     {v1alpha1.SubscriptionTrialing, nil, "trial has ended", week},
		"PastDue":        {v1alpha1.SubscriptionPastDue, nil, "is past due", 0},
		"Cancelled":      {v1alpha1.SubscriptionCancelled, nil, "is cancelled", 0},
		"New":            {"new", nil, "no active subscription", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := service(&posts{}, &connections{})
			s.Owner = func(string) *v1alpha1.Team {
				team := &v1alpha1.Team{}
				if tc.age > 0 {
					team.CreationTimestamp = metav1.NewTime(now.Add(-tc.age))
				}
				team.Spec.Subscription.State = tc.state
				if tc.trialEnds != nil {
					team.Spec.Subscription.TrialEndsAt = tc.trialEnds
				}
				return team
			}
			err := s.RequireSubscription(caller)
			if tc.want == "" && err != nil || tc.want != "" && (code(err) != "SUBSCRIPTION_REQUIRED" || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// listing are connections that can be listed.
type listing struct {
	connections

	all []*v1alpha1.Connection
}

func (l *listing) List(string) []*v1alpha1.Connection { return l.all }

// account returns a connection that was created the given number of minutes after now.
func account(name string, platform v1alpha1.Platform, made int, change func(*v1alpha1.Connection)) *v1alpha1.Connection {
	c := onX(name)
	c.Spec.Platform = platform
	c.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(made) * time.Minute))
	if change != nil {
		change(c)
	}
	return c
}

func TestListConnections(t *testing.T) {
	t.Parallel()
	var many []*v1alpha1.Connection
	most := plan.LimitsOf(starter{}.Owner("")).Accounts
	for i := range most + 1 {
		many = append(many, account(fmt.Sprint("c", i), v1alpha1.PlatformX, i, nil))
	}
	all := []*v1alpha1.Connection{
		account("late", v1alpha1.PlatformX, 3, nil),
		account("b", v1alpha1.PlatformX, 1, nil),
		account("a", v1alpha1.PlatformTikTok, 1, nil),
		account("connected", v1alpha1.PlatformTikTok, 9, func(c *v1alpha1.Connection) {
			c.Status.ConnectedAt = v1alpha1.NewTimePtr(now.Add(2 * time.Minute))
		}),
		account("disabled", v1alpha1.PlatformX, 0, func(c *v1alpha1.Connection) { c.Spec.Disabled = true }),
		account("leaving", v1alpha1.PlatformX, 0, func(c *v1alpha1.Connection) { c.DeletionTimestamp = &metav1.Time{Time: now} }),
	}
	for name, tc := range map[string]struct {
		reason   string
		owner    func(string) *v1alpha1.Team
		all      []*v1alpha1.Connection
		platform v1alpha1.Platform
		want     string
	}{
		"All":      {"oldest first, then by name", owner{}.Owner, all, "", "a b connected late"},
		"OfX":      {"connections of one platform", owner{}.Owner, all, v1alpha1.PlatformX, "b late"},
		"OfTikTok": {"connections of another platform", owner{}.Owner, all, v1alpha1.PlatformTikTok, "a connected"},
		"Plan":     {"connections beyond the plan cannot be used", starter{}.Owner, many, "", names(many[:most])},
		"NoLimit":  {"the plan covers all", owner{}.Owner, many, "", names(many)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := service(&posts{}, &connections{})
			s.Owner, s.Connections = tc.owner, &listing{all: tc.all}
			var got []string
			for _, c := range s.ListConnections(caller, tc.platform) {
				got = append(got, c.ID)
				if c.ID == "connected" && !c.ConnectedAt.Equal(now.Add(2*time.Minute)) {
					t.Errorf("the account was connected at %s", c.ConnectedAt)
				}
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%s: got %v, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func names(all []*v1alpha1.Connection) string {
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}
