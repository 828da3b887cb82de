// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestDeadlines checks the message of a rate-limited post. If the limit is on the account itself, it contains the
// connection's message.
func TestDeadlines(t *testing.T) {
	limited := func(conn *v1alpha1.Connection, in time.Duration, why string) {
		conn.Status.RateLimitedUntil, conn.Status.RateLimitedMessage = v1alpha1.NewTimePtr(t0.Add(in)), why
	}
	refused := func(conn *v1alpha1.Connection, reason, why string) {
		conn.Status.Conditions = append(conn.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionPublishingRefused, Status: metav1.ConditionTrue, Reason: reason, Message: why,
		})
	}
	const general = `x does not accept posts from connection "x" at the moment; the connection's status shows the reason and the end, or that of another connection to x if the limit applies to the whole app`
	for name, tc := range map[string]struct {
		reason string
		change func(conn *v1alpha1.Connection)
		want   v1alpha1.Blocked
	}{
		"another account's": {
			"the app's limit is recorded on another connection", func(*v1alpha1.Connection) {},
			v1alpha1.Blocked{Reason: v1alpha1.ReasonRateLimited, Problem: general},
		},
		"its own": {
			"the account's own message is repeated", func(c *v1alpha1.Connection) { limited(c, time.Minute, "the limit is reached") },
			v1alpha1.Blocked{
				Reason:  v1alpha1.ReasonRateLimited,
				Problem: `x does not accept posts from connection "x" at the moment; the connection's status shows when it will again: the limit is reached`,
			},
		},
		"its own, expired": {
			"an expired limit does not block; the app's does", func(c *v1alpha1.Connection) { limited(c, -time.Minute, "the limit is reached") },
			v1alpha1.Blocked{Reason: v1alpha1.ReasonRateLimited, Problem: general},
		},
		"locked": {
			"a locked account is named", func(c *v1alpha1.Connection) {
				limited(c, time.Hour, "it is locked")
				refused(c, v1alpha1.ReasonAccountRestricted, "it is locked")
			},
			v1alpha1.Blocked{Reason: v1alpha1.ReasonAccountRestricted, Problem: `x restricts the account of connection "x": it is locked`},
		},
		"locked a while ago": {
			"another limit blocks it now", func(c *v1alpha1.Connection) {
				limited(c, time.Minute, "the limit is reached")
				refused(c, v1alpha1.ReasonAccountRestricted, "it is locked")
			},
			v1alpha1.Blocked{
				Reason:  v1alpha1.ReasonRateLimited,
				Problem: `x does not accept posts from connection "x" at the moment; the connection's status shows when it will again: the limit is reached`,
			},
		},
		"without a permission": {
			"the condition does not restrict the account", func(c *v1alpha1.Connection) {
				limited(c, time.Hour, "a permission is missing")
				refused(c, v1alpha1.ReasonRefused, "a permission is missing")
			},
			v1alpha1.Blocked{
				Reason:  v1alpha1.ReasonRateLimited,
				Problem: `x does not accept posts from connection "x" at the moment; the connection's status shows when it will again: a permission is missing`,
			},
		},
		"found locked by a probe": {
			"a restricted account is not called", func(c *v1alpha1.Connection) { ready(c, metav1.ConditionFalse, v1alpha1.ReasonAccountRestricted) },
			v1alpha1.Blocked{Reason: v1alpha1.ReasonAccountRestricted, Problem: `x restricts the account of connection "x": so it is`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(func(s *situation) {
				tc.change(s.conn)
				s.BlockedUntil = func(*v1alpha1.Connection) time.Time { return t0.Add(time.Minute) }
			})
			got := f.blocked(0)
			if got == nil {
				t.Fatalf("%s: it is not blocked", tc.reason)
			}
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
