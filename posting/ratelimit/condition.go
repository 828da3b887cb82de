// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Describe derives a connection's RateLimited condition from its status. It is True while the platform rejects calls
// for the account, and otherwise absent. reason is the condition's reason. If it is empty, Describe derives it, and
// keeps QuotaUsedUp, which the numbers in the status may not show, until the platform reports another limit.
func Describe(conn *v1alpha1.Connection, reason string, now time.Time) {
	status := &conn.Status
	until := BlockedUntil(status, now)
	if until.IsZero() {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionRateLimited)
		return
	}
	if reason = cmp.Or(reason, reasonOf(status, now)); reason == v1alpha1.ReasonAccountLimited {
		c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionRateLimited)
		if c != nil && c.Reason == v1alpha1.ReasonQuotaUsedUp && strings.HasSuffix(c.Message, described(status)) {
			reason = c.Reason
		}
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionRateLimited, Status: metav1.ConditionTrue, Reason: reason,
		Message:            fmt.Sprintf("nothing is sent before %s%s", v1alpha1.NewTime(until), described(status)),
		ObservedGeneration: conn.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// described returns the end of the condition's message, which contains the platform's own message.
func described(status *v1alpha1.ConnectionStatus) string { return ": " + status.RateLimitedMessage }

func reasonOf(status *v1alpha1.ConnectionStatus, now time.Time) string {
	until := BlockedUntil(status, now)
	usedUp := func(l v1alpha1.RateLimit) bool {
		return l.Remaining == 0 && (l.ResetsAt == nil || l.ResetsAt.After(now))
	}
	switch refused := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionPublishingRefused); {
	case refused != nil && refused.Reason == v1alpha1.ReasonAccountRestricted && refused.Message == status.RateLimitedMessage:
		return v1alpha1.ReasonAccountRestricted
	case !AppBlockedUntil(status, now).IsZero() && !status.AppRateLimitedUntil.Before(until):
		return v1alpha1.ReasonAppLimited
	case slices.ContainsFunc(status.RateLimits, usedUp):
		return v1alpha1.ReasonQuotaUsedUp
	default:
		return v1alpha1.ReasonAccountLimited
	}
}

// Change describes a change of a connection's limit.
type Change struct {
	// Begun is true if a limit on the account has started, and false if it has ended.
	Begun bool
	// Reason and Message are the fields of the RateLimited condition.
	Reason, Message string
}

// Changed compares a connection's conditions with its earlier ones. It returns false if there is no limit in either, or
// if the limit is the same, even if it now ends later.
func Changed(before, after []metav1.Condition) (Change, bool) {
	was := meta.FindStatusCondition(before, v1alpha1.ConditionRateLimited)
	is := meta.FindStatusCondition(after, v1alpha1.ConditionRateLimited)
	switch {
	case is != nil && (was == nil || was.Reason != is.Reason):
		return Change{Begun: true, Reason: is.Reason, Message: is.Message}, true
	case is == nil && was != nil:
		return Change{Reason: was.Reason, Message: "the account can post again: its limit expired or was lifted"}, true
	default:
		return Change{}, false
	}
}
