// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Budget is how much a team may keep in the cluster and have under way.
type Budget struct {
	Posts, PostBytes, UnfinishedPosts int64
	PendingFiles, PendingFileBytes    int64
	Keys                              int64
	// Files, Connections and Grants are how many objects of these kinds a team may store.
	// No team gets there by its work: they bound the bytes in etcd, which for these kinds
	// are the objects times the size of one.
	Files, Connections, Grants int64
}

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

// What the plans allow. A stored post takes some 2 KiB of etcd, with what its delivery
// records, and a post of many targets up to 256 KiB.
var (
	// starterBudget is also that of a trial, which anybody can have: fifteen of them, full,
	// are etcd's default of 2 GiB.
	starterBudget = Budget{
		Posts:            2_000,          // three months of twenty posts a day, as long as finished ones are kept
		PostBytes:        128 * mebibyte, // 64 KiB for each of them; a post has 2 as a rule
		UnfinishedPosts:  500,            // a month planned ahead, with as many drafts
		PendingFiles:     100,            // the files of ten posts of ten images, of which an upload takes minutes
		PendingFileBytes: 20 * gibibyte,  // twenty of the largest videos
		Keys:             20,             // two for each of ten programs, while tokens are replaced
		Files:            4_100,          // two for each post, and those that are waited for; 1.5 KiB each are 6 MiB
		Connections:      200,            // the plan covers ten; 3 KiB each are 600 KiB
		Grants:           1_000,          // twice those that may be good at a time; 1 KiB each are 1 MiB
	}
	// unlimitedBudget bounds a team that nothing else does: three of them, full, are etcd's
	// default of 2 GiB. With the largest objects that a person can write on purpose, one is
	// 8 GiB, which etcd's authors advise to stay below (test/rights).
	unlimitedBudget = Budget{
		Posts:            16_000,         // a month of five hundred posts a day
		PostBytes:        512 * mebibyte, // 32 KiB for each of them
		UnfinishedPosts:  10_000,         // twenty days of those ahead; the manager keeps them in memory
		PendingFiles:     1_000,
		PendingFileBytes: 200 * gibibyte,
		Keys:             100,
		Files:            33_000,
		Connections:      5_000, // five times what benchmark B7 connects; 3 KiB each are 15 MiB
		Grants:           5_000,
	}
)

// BudgetOf returns the budget of a team: that of its plan, but for what the Team says. A
// team on trial has that of the starter plan, and so has a namespace that no team owns (nil).
func BudgetOf(team *v1alpha1.Team) Budget {
	if team == nil {
		return starterBudget
	}
	subscription := &team.Spec.Subscription
	b := unlimitedBudget
	if subscription.Plan == v1alpha1.PlanStarter || subscription.State == v1alpha1.SubscriptionTrialing {
		b = starterBudget
	}
	own := &team.Spec.Budget
	for _, count := range []struct {
		from *int32
		into *int64
	}{
		{own.Posts, &b.Posts}, {own.UnfinishedPosts, &b.UnfinishedPosts}, {own.PendingFiles, &b.PendingFiles}, {own.Keys, &b.Keys},
	} {
		if count.from != nil {
			*count.into = int64(*count.from)
		}
	}
	if own.PostBytes != nil {
		b.PostBytes = own.PostBytes.Value()
	}
	if own.PendingFileBytes != nil {
		b.PendingFileBytes = own.PendingFileBytes.Value()
	}
	if own.Posts != nil || own.PendingFiles != nil {
		b.Files = filesPerPost*b.Posts + b.PendingFiles
	}
	return b
}

// filesPerPost is how many files a team may store for each post that it may.
const filesPerPost = 2

// BudgetItems are the fields of a budget, in the order in which they are shown.
var BudgetItems = []v1alpha1.BudgetItem{
	v1alpha1.BudgetPosts, v1alpha1.BudgetPostBytes, v1alpha1.BudgetUnfinishedPosts,
	v1alpha1.BudgetPendingFiles, v1alpha1.BudgetPendingFileBytes, v1alpha1.BudgetKeys,
}

// Limit returns how much a budget allows of one of its fields.
func (b *Budget) Limit(item v1alpha1.BudgetItem) int64 {
	switch item {
	case v1alpha1.BudgetPosts:
		return b.Posts
	case v1alpha1.BudgetPostBytes:
		return b.PostBytes
	case v1alpha1.BudgetUnfinishedPosts:
		return b.UnfinishedPosts
	case v1alpha1.BudgetPendingFiles:
		return b.PendingFiles
	case v1alpha1.BudgetPendingFileBytes:
		return b.PendingFileBytes
	case v1alpha1.BudgetKeys:
		return b.Keys
	default:
		return 0
	}
}

// Use returns the use of one field of a budget.
func (b *Budget) Use(item v1alpha1.BudgetItem, used int64) v1alpha1.BudgetUse {
	return v1alpha1.BudgetUse{Item: item, Used: used, Limit: b.Limit(item)}
}

// Demand is how much more of a field of a budget something needs than is used.
type Demand struct {
	Item       v1alpha1.BudgetItem
	Used, More int64
}

// Shortage words, for people, the first field of a team's budget of which there is not enough;
// "" if there is room for all.
func (b *Budget) Shortage(team string, wants ...Demand) string {
	for _, w := range wants {
		if w.Used+w.More > b.Limit(w.Item) {
			return b.RefusalMessage(w.Item, team, w.Used, w.More)
		}
	}
	return ""
}

// BudgetCounter is what counts a team's budget.
func BudgetCounter() v1alpha1.UsageSpec {
	return v1alpha1.UsageSpec{Resource: v1alpha1.ResourceBudget}
}

// FileBytes is how many bytes a file takes of a budget: as many as its Media says or, where
// it does not, as many as a file of its kind may have.
func FileBytes(media *v1alpha1.MediaSpec) int64 {
	switch {
	case media.SizeBytes > 0:
		return media.SizeBytes
	case strings.HasPrefix(string(media.MimeType), "video/"):
		return v1alpha1.MaxVideoBytes
	default:
		return v1alpha1.MaxImageBytes
	}
}

// refusals say what a field bounds, and what a team can do about it.
var refusals = map[v1alpha1.BudgetItem]struct{ what, remedy string }{
	v1alpha1.BudgetPosts: {
		"%s stored posts, finished and cancelled ones counted", "Delete posts that are not needed any more (kubectl delete post)",
	},
	v1alpha1.BudgetPostBytes: {
		"%s bytes of stored posts", "Delete posts that are not needed any more (kubectl delete post), or shorten this one",
	},
	v1alpha1.BudgetUnfinishedPosts: {
		"%s posts that are drafts, scheduled or being delivered", "Cancel drafts or scheduled posts",
	},
	v1alpha1.BudgetPendingFiles: {
		"%s files that are waited for", "Upload those that were announced, or wait until their addresses end",
	},
	v1alpha1.BudgetPendingFileBytes: {
		"%s bytes of files that are waited for", "Upload those that were announced, or wait until their addresses end",
	},
	v1alpha1.BudgetKeys: {
		"%s API keys, revoked and expired ones counted", "Delete keys that are revoked (kubectl delete apikey)",
	},
}

// RefusalMessage words, for people, that a team's budget does not allow so much more; nothing more
// is what a draft needs that is published.
func (b *Budget) RefusalMessage(item v1alpha1.BudgetItem, team string, used, more int64) string {
	words := refusals[item]
	state := fmt.Sprintf("%s are used and this needs %s more", grouped(used), grouped(more))
	if more == 0 {
		state = fmt.Sprintf("%s are used, so that no draft is published before there are fewer", grouped(used))
	}
	return fmt.Sprintf("the team's budget allows "+words.what+"; %s. %s, or have an administrator raise spec.budget.%s of Team %q.",
		grouped(b.Limit(item)), state, words.remedy, item, team)
}

// grouped writes a number with a comma before each three digits.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// QuotaRefusalMessage words, for people, that Kubernetes stores no more objects of a kind, in the
// plural, because of the team's ResourceQuota.
func QuotaRefusalMessage(kind, team string, used, limit int64) string {
	b := Budget{Posts: limit, Keys: limit}
	switch kind {
	case "posts":
		return b.RefusalMessage(v1alpha1.BudgetPosts, team, used, 1)
	case "apikeys":
		return b.RefusalMessage(v1alpha1.BudgetKeys, team, used, 1)
	case "media":
		return fmt.Sprintf("the team's budget allows %s stored files, %d for each post and those that are waited for; %s are used. "+
			"Delete those that no post needs (kubectl delete media), or have an administrator raise spec.budget.posts of Team %q.",
			grouped(limit), filesPerPost, grouped(used), team)
	case "connections":
		return fmt.Sprintf("a team of this plan may have %s connections, disabled ones counted; %s are used. "+
			"Delete those that are not needed any more, or have an administrator change the plan of Team %q.", grouped(limit), grouped(used), team)
	default:
		return fmt.Sprintf("a team of this plan may store %s %s; %s are used. "+
			"Delete those that are not needed any more, or have an administrator change the plan of Team %q.", grouped(limit), kind, grouped(used), team)
	}
}
