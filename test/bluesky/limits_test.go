// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"errors"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// TestLimits checks how Herald interprets the responses of a server that limits calls.
func TestLimits(t *testing.T) {
	s := start(t, "--limits", "bakery.test")
	acme := &s.Accounts[0]
	p := newAt(t, s.URL)
	posted := p.Publish(t.Context(), acme.job(1, platforms.Content{Category: v1alpha1.CategoryText, Text: "hello"}))
	if posted.Outcome != platforms.Posted || len(posted.RateLimits) != 0 {
		t.Errorf("got %+v; the server reports the limit of calls, which has less left than that of posts", posted)
	}
	// The server accepts 30 attempts to sign in within five minutes (com.atproto.server.createSession).
	const attempts, window = 30, 5 * time.Minute
	for range attempts {
		_, err := p.Identify(t.Context(), platforms.Token{Access: acme.Handle + ":aaaa-bbbb-cccc-dddd"})
		failure, _ := errors.AsType[*platforms.Error](err)
		switch {
		case failure == nil:
			t.Fatalf("a wrong password returns %v", err)
		case failure.Class == platforms.ClassReconnect:
			continue
		case failure.Class != platforms.ClassRateLimited || !failure.RetryAt.After(time.Now()) || failure.RetryAt.After(time.Now().Add(window)):
			t.Errorf("the limit is %+v until %s", failure, failure.RetryAt)
		}
		return
	}
	t.Errorf("the server accepted %d wrong passwords", attempts)
}
