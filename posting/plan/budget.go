// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Budget limits a team's objects in the cluster and its work in progress.
type Budget struct {
	Posts, PostBytes, UnfinishedPosts int64
	PendingFiles, PendingFileBytes    int64
	Keys                              int64
	// Files, Connections, Grants, Schedules and Notifiers limit how many such objects are stored. Normal use does not
	// reach these limits. They bound the storage in etcd, because these objects have a bounded size.
	Files, Connections, Grants, Schedules, Notifiers int64
}

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

// The budgets of the plans. A stored post takes about 2 KiB of etcd with its delivery record, at most 256 KiB.
var (
	// starterBudget also applies to trials, which anyone can start: fifteen full trials reach etcd's default of 2 GiB.
	starterBudget = Budget{
		Posts:            2_000,          // three months of twenty posts a day, for as long as finished posts are kept
		PostBytes:        128 * mebibyte, // 64 KiB per post; a typical post has 2
		UnfinishedPosts:  500,            // a month of planned posts, and as many drafts
		PendingFiles:     100,            // the files of ten posts with ten images, which take minutes to upload
		PendingFileBytes: 20 * gibibyte,  // twenty videos of maximum size
		Keys:             20,             // two for each of ten programs, during token rotation
		Files:            4_100,          // two per post, and the pending files; at 1.5 KiB each, 6 MiB
		Connections:      200,            // the plan allows ten; at 3 KiB each, 600 KiB
		Grants:           1_000,          // twice the maximum number of valid grants; at 1 KiB each, 1 MiB
		Schedules:        50,             // a recurring post for each weekday on each of ten accounts
		Notifiers:        10,             // each may have a call in flight, and 250 notifications of 450 bytes in its status
	}
	// unlimitedBudget is the budget of a team that has no other limits: three full teams reach etcd's default of 2 GiB.
	// With objects of maximum size, a malicious team takes 8 GiB, the most that etcd's authors recommend (test/rights).
	unlimitedBudget = Budget{
		Posts:            16_000,         // a month of five hundred posts a day
		PostBytes:        512 * mebibyte, // 32 KiB per post
		UnfinishedPosts:  10_000,         // twenty days of planned posts; the manager keeps them in memory
		PendingFiles:     1_000,
		PendingFileBytes: 200 * gibibyte,
		Keys:             100,
		Files:            33_000,
		Connections:      5_000, // 3 KiB each are 15 MiB
		Grants:           5_000,
		Schedules:        200, // at one every five minutes, they would create 57,600 posts a day, which the other limits stop
		Notifiers:        50,
	}
)

// BudgetOf returns a team's budget: that of its plan, with the Team's overrides. A team on trial has the starter
// budget, and so does a namespace without a team (nil).
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
	b.Files = filesPerPost*b.Posts + b.PendingFiles
	return b
}

const filesPerPost = 2

// BudgetItems lists the fields of a budget in display order.
var BudgetItems = []v1alpha1.BudgetItem{
	v1alpha1.BudgetPosts, v1alpha1.BudgetPostBytes, v1alpha1.BudgetUnfinishedPosts,
	v1alpha1.BudgetPendingFiles, v1alpha1.BudgetPendingFileBytes, v1alpha1.BudgetKeys,
}

// Limit returns the limit of a budget field.
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

// Use returns the usage of a budget field.
func (b *Budget) Use(item v1alpha1.BudgetItem, used int64) v1alpha1.BudgetUse {
	return v1alpha1.BudgetUse{Item: item, Used: used, Limit: b.Limit(item)}
}

// Demand is the additional amount of a budget field that an operation would use.
type Demand struct {
	Item       v1alpha1.BudgetItem
	Used, More int64
}

// Shortage returns the message for the first field whose budget the demand would exceed, or "" if there is none.
func (b *Budget) Shortage(team string, wants ...Demand) string {
	for _, w := range wants {
		if w.Used+w.More > b.Limit(w.Item) {
			return b.RefusalMessage(w.Item, team, w.Used, w.More)
		}
	}
	return ""
}

// BudgetCounter returns the spec of the Usage that counts a team's use of its budget.
func BudgetCounter() v1alpha1.UsageSpec {
	return v1alpha1.UsageSpec{Resource: v1alpha1.ResourceBudget}
}

// FileBytes returns a file's size in the budget: that of its Media or, if it is not set, the maximum for its kind.
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

var refusals = map[v1alpha1.BudgetItem]struct{ what, remedy string }{
	v1alpha1.BudgetPosts: {
		"%s stored posts, including finished and cancelled ones", "Delete posts that are no longer needed (kubectl delete post)",
	},
	v1alpha1.BudgetPostBytes: {
		"%s bytes of stored posts", "Delete posts that are no longer needed (kubectl delete post), or shorten this one",
	},
	v1alpha1.BudgetUnfinishedPosts: {
		"%s posts that are drafts, scheduled or being delivered", "Cancel drafts or scheduled posts",
	},
	v1alpha1.BudgetPendingFiles: {
		"%s pending files", "Upload the registered files, or wait until their upload URLs expire",
	},
	v1alpha1.BudgetPendingFileBytes: {
		"%s bytes of pending files", "Upload the registered files, or wait until their upload URLs expire",
	},
	v1alpha1.BudgetKeys: {
		"%s API keys, including revoked and expired ones", "Delete keys that are revoked (kubectl delete apikey)",
	},
}

// RefusalMessage returns the message for a demand that exceeds a team's budget; the demand is zero for publishing a
// draft.
func (b *Budget) RefusalMessage(item v1alpha1.BudgetItem, team string, used, more int64) string {
	words := refusals[item]
	state := fmt.Sprintf("%s are used and this needs %s more", grouped(used), grouped(more))
	if more == 0 {
		state = fmt.Sprintf("%s are used, so no draft can be published until there are fewer", grouped(used))
	}
	return fmt.Sprintf("the team's budget allows "+words.what+"; %s. %s, or have an administrator raise spec.budget.%s of Team %q.",
		grouped(b.Limit(item)), state, words.remedy, item, team)
}

func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// QuotaRefusalMessage returns the message for objects rejected by the team's ResourceQuota. kind is in the plural.
func QuotaRefusalMessage(kind, team string, used, limit int64) string {
	b := Budget{Posts: limit, Keys: limit}
	switch kind {
	case "posts":
		return b.RefusalMessage(v1alpha1.BudgetPosts, team, used, 1)
	case "apikeys":
		return b.RefusalMessage(v1alpha1.BudgetKeys, team, used, 1)
	case "media":
		return fmt.Sprintf("the team's budget allows %s stored files (%d for each post, plus pending files); %s are used. "+
			"Delete those that no post needs (kubectl delete media), or have an administrator raise spec.budget.posts of Team %q.",
			grouped(limit), filesPerPost, grouped(used), team)
	case "connections":
		return fmt.Sprintf("a team of this plan may have %s connections, including disabled ones; %s are used. "+
			"Delete those that are no longer needed, or have an administrator change the plan of Team %q.", grouped(limit), grouped(used), team)
	default:
		return fmt.Sprintf("a team of this plan may store %s %s; %s are used. "+
			"Delete those that are no longer needed, or have an administrator change the plan of Team %q.", grouped(limit), kind, grouped(used), team)
	}
}
