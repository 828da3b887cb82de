// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// LookupRequired reports whether it must be known what became of an earlier post of this name
// before anything is sent for a post. It need not for one that the API has made under a
// name that nobody can guess or ask for again, unless somebody has made it anew since.
func LookupRequired(post *v1alpha1.Post) bool {
	if earlier := post.Status.Earlier; earlier != nil {
		return earlier.Object != string(post.UID)
	}
	if IsCopy(post) {
		return true
	}
	switch {
	case post.Status.Finished:
		return false
	case posting.Started(post):
		return posting.Recreated(post) // Its own entries may be those of the object before it.
	}
	if made := post.Labels[v1alpha1.OriginLabel] != "" && post.Annotations[v1alpha1.BornAnnotation] != ""; made {
		return post.Annotations[v1alpha1.RequestAnnotation] != "" || posting.Recreated(post)
	}
	return !Armed(post)
}

// IsCopy reports whether an object is a copy of another one, made anew from a backup: the
// API noted its birth, or the manager the object, and it is not that one.
func IsCopy(post *v1alpha1.Post) bool {
	return posting.Restored(post) || CopyOf(post) != ""
}

// CopyOf returns the uid of the object that an applied post is a copy of; empty for one that
// is none, and for a post that came through the API, which does not say it.
func CopyOf(post *v1alpha1.Post) types.UID {
	name, uid, ok := strings.Cut(post.Annotations[v1alpha1.ArmedAnnotation], "/")
	if !ok || name != post.Name || uid == string(post.UID) {
		return ""
	}
	return types.UID(uid)
}

// Covers reports whether the record tells what became of an object. Which one is meant is not
// known of a post that came through the API: no other one had its name.
func (r *Record) Covers(object types.UID) bool {
	return object == "" || object == r.UID || slices.Contains(r.Earlier, object)
}

// Armed reports whether earlier posts were looked for before this very object got its
// finalizer.
func Armed(post *v1alpha1.Post) bool { return post.Annotations[v1alpha1.ArmedAnnotation] == Arm(post) }

// Arm is the value of ArmedAnnotation of a post.
func Arm(post *v1alpha1.Post) string { return post.Name + "/" + string(post.UID) }

// Adopted is what came of entering a record into a post.
type Adopted struct {
	// Targets are the indexes of those that read what became of the earlier post's.
	Targets []int32
	// Unknown are the names of Connections that do not exist, so that it cannot be told
	// whether their targets are out. Nothing was entered then.
	Unknown []string
}

// Adopt enters into a post what became of an earlier one of its name, or of the post itself
// before its cluster was put back to an earlier state: what is out reads posted, and what may
// be waits for a person. What was refused, or never claimed, is left to be sent; of a post that
// was underway only what was refused, since the record may be older than its object. Targets match
// by their account and, among those of one account, by their turn. What the post's own entries
// say to be out, as those of a copy may that came with its status, stays.
func (r *Record) Adopt(post *v1alpha1.Post, account Account) Adopted {
	return r.adopt(post, account, func(entry *v1alpha1.TargetStatus) bool { return !attempt.Posted(entry) })
}

// AdoptMore enters what Adopt would, into those targets alone for which nothing was begun and
// nothing entered: since it was looked up, an edit may have brought them, or they may have
// come to be of another account.
func (r *Record) AdoptMore(post *v1alpha1.Post, account Account) Adopted {
	return r.adopt(post, account, func(entry *v1alpha1.TargetStatus) bool {
		return entry == nil || entry.Attempt == nil && !attempt.Settled(entry) && len(entry.Cards) == 0
	})
}

func (r *Record) adopt(post *v1alpha1.Post, account Account, open func(entry *v1alpha1.TargetStatus) bool) Adopted {
	var out Adopted
	matches := make([]*Target, len(post.Spec.Targets))
	turns, taken := r.targetsByKey(account), map[accountKey]int{}
	for i := range post.Spec.Targets {
		name := post.Spec.Targets[i].ConnectionRef.Name
		key, ok := r.keyOf(name, account)
		if !ok {
			if !slices.Contains(out.Unknown, name) {
				out.Unknown = append(out.Unknown, name)
			}
			continue
		}
		if turn := taken[key]; turn < len(turns[key]) {
			matches[i] = turns[key][turn]
		}
		taken[key]++
	}
	if len(out.Unknown) > 0 {
		return out
	}
	for i, old := range matches {
		if old == nil || !old.mayBePublished() && !r.mayBeSentSince(old) || !open(posting.Target(post, i)) {
			continue
		}
		r.adoptTarget(post, i, old)
		out.Targets = append(out.Targets, int32(i))
	}
	return out
}

// FirstSent returns when the first call was claimed whose target is not known to be
// published; zero if there was none.
func (r *Record) FirstSent() (first time.Time) {
	for _, list := range [][]Target{r.Targets, r.Before} {
		for i := range list {
			t := &list[i]
			if t.Attempt == nil || t.posted(posting.Cards(&r.Spec)) {
				continue
			}
			at := t.Attempt.StartedAt.Time
			if from := t.Attempt.SearchFrom; from != nil && from.Before(at) {
				at = from.Time
			}
			if first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	return first
}

// keyOf is by what a target matches. Where its Connection does not exist, that is as the
// record knows it.
func (r *Record) keyOf(connection string, account Account) (accountKey, bool) {
	if platform, id, ok := account(connection); ok {
		return accountKey{platform: platform, account: id}, true
	}
	for _, list := range [][]Target{r.Targets, r.Before} {
		for i := range list {
			if list[i].Connection == connection {
				return list[i].key(), true
			}
		}
	}
	return accountKey{}, false
}

// mayBeSentSince reports whether a target may have been sent after the record was written.
func (r *Record) mayBeSentSince(t *Target) bool {
	return r.Underway && t.State == v1alpha1.TargetPending
}

// adoptTarget enters what became of a target into entry i of a post.
func (r *Record) adoptTarget(post *v1alpha1.Post, i int, old *Target) {
	next := *old.DeepCopy()
	next.Index = int32(i) //nolint:gosec // a post has at most 100 targets
	next.Phase, next.Reason, next.Message = "", "", ""
	next.Prepared, next.NextTryAt, next.TryUntil = nil, nil, nil
	cards, had := posting.Cards(&post.Spec), len(next.Cards)
	switch {
	case old.posted(cards):
		next.State, next.Blocked = v1alpha1.TargetPosted, nil
		next.Cards = next.Cards[:min(had, cards)]
	case old.doubtful(), r.mayBeSentSince(old):
		if next.Attempt != nil && next.Attempt.Outcome == "" {
			next.Attempt.Outcome, next.Attempt.Refusal = v1alpha1.OutcomeUnknown, nil
		}
		next.State = v1alpha1.TargetUndecided
		next.Blocked = &v1alpha1.Blocked{Reason: v1alpha1.ReasonOutcomeUnknown, Problem: unknownOf[r.UID == post.UID]}
	default: // the first cards of a tree are out, and the next one was refused
		next.State, next.Blocked = v1alpha1.TargetPending, nil
	}
	if entry := posting.Target(post, i); entry != nil {
		preserveFacts(&next, entry)
		*entry = next
		return
	}
	post.Status.Targets = append(post.Status.Targets, next)
}

// unknownOf says of a target that nobody knows whether it is out: of the post itself, and of
// an earlier one.
var unknownOf = map[bool]string{
	true:  "this post was sent before the cluster was put back to an earlier state, and whether it was published is unknown",
	false: "an earlier post of this name was sent, and whether it was published is unknown",
}

// preserveFacts keeps what an entry holds and is never removed from it: that a call was claimed,
// and cards that are out.
func preserveFacts(next, entry *v1alpha1.TargetStatus) {
	if next.Attempt == nil && entry.Attempt != nil {
		next.Attempt = entry.Attempt.DeepCopy()
		next.Attempt.Checkpoint, next.Attempt.ContentHash = "", ""
		if attempt.IsOpen(next.Attempt) {
			next.Attempt.Outcome, next.Attempt.Refusal = v1alpha1.OutcomeUnknown, nil
		}
	}
	if len(next.Cards) < len(entry.Cards) {
		next.Cards = entry.Cards
	}
	if entry.ExternalID != "" {
		next.ExternalID = entry.ExternalID
	}
}

// posted reports whether nothing is left to be sent of a target in a post of so many cards:
// it is out or, of other content than now, something of it is.
func (t *Target) posted(cards int) bool {
	switch {
	case t.State == v1alpha1.TargetPosted:
		return true
	case t.ExternalID == "":
		return false
	default:
		return cards < 2 || len(t.Cards) == 0 || len(t.Cards) >= cards
	}
}
