// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/usage"
)

// Connections returns the connection with the given name in the post's namespace, or nil if it is not known.
type Connections func(name string) *v1alpha1.Connection

// XPosts returns the spec of the Usage that counts a team's posts to X in a calendar month (UTC).
func XPosts(at time.Time) v1alpha1.UsageSpec {
	return v1alpha1.UsageSpec{Resource: v1alpha1.ResourceXPosts, Period: usage.Month(at)}
}

// TikTokDrafts returns the spec of the Usage of drafts in an account's inbox, shared by all connections to it.
func TikTokDrafts(c *v1alpha1.Connection) v1alpha1.UsageSpec {
	return v1alpha1.UsageSpec{Resource: v1alpha1.ResourceTikTokDrafts, Account: c.Spec.AccountID, Period: tikTokDraftsPeriod}
}

// Max returns a Usage's limit, from the plan or the platform.
func (l Limits) Max(counter *v1alpha1.UsageSpec) int {
	if counter.Resource == v1alpha1.ResourceXPosts {
		return l.XPosts
	}
	return MaxTikTokDrafts
}

// CounterOf returns the spec of the Usage that counts target i of a post, given its connection, or false if there is
// none. startingDeadline has the same meaning as in IntendedAt.
func (l Limits) CounterOf(post *v1alpha1.Post, i int, c *v1alpha1.Connection, startingDeadline time.Duration) (v1alpha1.UsageSpec, bool) {
	switch {
	case c.Spec.Platform == v1alpha1.PlatformX && l.XPosts > 0:
		return XPosts(IntendedAt(post, i, startingDeadline)), true
	case IsTikTokDraft(post, i, c.Spec.Platform):
		return TikTokDrafts(c), true
	default:
		return v1alpha1.UsageSpec{}, false
	}
}

// Counters returns the specs of the Usages that count a post, first those of the plan, then those of the platforms. A
// target whose connection is not known counts toward X, which may have been its platform.
func (l Limits) Counters(post *v1alpha1.Post, find Connections, startingDeadline time.Duration) []v1alpha1.UsageSpec {
	var ofPlan, ofPlatforms []v1alpha1.UsageSpec
	for i := range post.Spec.Targets {
		c := find(post.Spec.Targets[i].ConnectionRef.Name)
		if c == nil {
			c = &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX}}
		}
		switch counter, ok := l.CounterOf(post, i, c, startingDeadline); {
		case !ok, slices.Contains(ofPlan, counter), slices.Contains(ofPlatforms, counter):
		case counter.Resource == v1alpha1.ResourceXPosts:
			ofPlan = append(ofPlan, counter)
		default:
			ofPlatforms = append(ofPlatforms, counter)
		}
	}
	return append(ofPlan, ofPlatforms...)
}

// Uses returns what each target uses. A target's platform is known while its connection exists, or from its attempt.
func Uses(counter *v1alpha1.UsageSpec, post *v1alpha1.Post, find Connections, startingDeadline time.Duration) []usage.Use {
	uses := make([]usage.Use, 0, len(post.Spec.Targets))
	for i := range post.Spec.Targets {
		c := find(post.Spec.Targets[i].ConnectionRef.Name)
		use := UseOf(post, i)
		use.At = IntendedAt(post, i, startingDeadline)
		platform := platformOf(post, i, c)
		use.Assumed = platform == "" && !use.Final
		if platform != "" && !appliesTo(counter, post, i, platform, c) {
			use.Count = 0
		}
		if counter.Resource != v1alpha1.ResourceXPosts {
			use.Count = min(use.Count, 1)
		}
		uses = append(uses, use)
	}
	return uses
}

// UsesOfStored returns a stored post's uses, to compare it with a Usage.
func UsesOfStored(counter *v1alpha1.UsageSpec, post *v1alpha1.Post, find Connections, startingDeadline time.Duration) usage.PostUses {
	return usage.PostUses{
		Name: post.Name, UID: post.UID, Begun: posting.Of(post).Started(), Uses: Uses(counter, post, find, startingDeadline),
	}
}

func appliesTo(counter *v1alpha1.UsageSpec, post *v1alpha1.Post, i int, platform v1alpha1.Platform, c *v1alpha1.Connection) bool {
	if counter.Resource == v1alpha1.ResourceXPosts {
		return platform == v1alpha1.PlatformX
	}
	return IsTikTokDraft(post, i, platform) && (c == nil || TikTokDrafts(c) == *counter)
}

func platformOf(post *v1alpha1.Post, i int, c *v1alpha1.Connection) v1alpha1.Platform {
	if t := posting.Of(post).Target(i); t != nil && t.Attempt != nil && t.Platform != "" {
		return t.Platform
	}
	if c != nil {
		return c.Spec.Platform
	}
	return ""
}
