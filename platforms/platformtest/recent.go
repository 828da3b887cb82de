// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platformtest

import (
	"slices"
	"testing"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/sandboxtest"
)

// testRecent lists an account's posts, as for a user who is looking for one, and parses the listed addresses.
func (s *Suite) testRecent(t *testing.T) {
	f, p := s.publisher(t)
	lister, lists := p.(platforms.Lister)
	reader, reads := p.(platforms.PostParser)
	if !lists || !reads {
		t.Fatal("a person cannot be shown the posts of an account, or name one")
	}
	begun := now().Add(-2 * time.Second)
	var ids []string
	for _, text := range []string{"hello", "something else"} {
		result := p.Publish(t.Context(), f.prepared(t, text))
		if result.Outcome != platforms.Posted {
			t.Fatalf("got %+v", result)
		}
		ids = append([]string{result.ExternalID}, ids...)
	}
	account := platforms.Account{ID: f.account.ID, Username: f.account.Username, Token: f.token()}
	for name, tc := range map[string]struct {
		reason string
		which  platforms.Recent
		want   []string
	}{
		"all":     {"the newest comes first", platforms.Recent{Since: begun, Limit: 20}, ids},
		"one":     {"no more than are asked for", platforms.Recent{Since: begun, Limit: 1}, ids[:1]},
		"later":   {"what is older is left out", platforms.Recent{Since: now().Add(time.Hour), Limit: 20}, nil},
		"replies": {"these hang from nothing", platforms.Recent{Since: begun, Limit: 20, Replies: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := lister.RecentPosts(t.Context(), account, tc.which)
			var got []string
			for i := range found {
				got = append(got, found[i].ID)
				named, ok := reader.ParsePost(account, found[i].URL)
				if !ok || named.ID != "" && named.ID != found[i].ID || named.ID == "" && named.Code == "" {
					t.Errorf("the listed address %s reads as %+v", found[i].URL, named)
				}
				if found[i].Text == "" || found[i].At.IsZero() {
					t.Errorf("a post is listed without its text or its time: %+v", found[i])
				}
			}
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%s: %v, %v, want %v", tc.reason, got, err, tc.want)
			}
		})
	}
	for _, fault := range []sandboxtest.Fault{{Kind: "status", Status: 503}, {Kind: "token_revoked"}} {
		fault.Operation = "list"
		f.fault(t, fault)
		found, err := lister.RecentPosts(t.Context(), account, platforms.Recent{Since: begun, Limit: 20})
		if err == nil || len(found) > 0 || classOf(err) == "" {
			t.Errorf("%s: %v, %v, want an error of the platform", fault.Kind, found, err)
		}
		f.checkNoSecrets(t, err)
		f.clearFaults(t)
	}
	if reader.PostHint() == "" {
		t.Error("nothing says what a person enters")
	}
}
