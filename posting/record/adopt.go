// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// LookupRequired reports whether the outcome of an earlier post with the same name matters. A post that the API created
// under a random name does not need it, because no later request can use that name, unless its object was recreated.
func LookupRequired(post *v1alpha1.Post) bool {
	if earlier := post.Status.Earlier; earlier != nil {
		return earlier.Object != string(post.UID)
	}
	if IsCopy(post) {
		return true
	}
	view := posting.Of(post)
	switch {
	case post.Status.Finished:
		return false
	case view.Started():
		return view.Recreated() // the entries may belong to the previous object
	}
	if made := post.Labels[v1alpha1.OriginLabel] != "" && post.Annotations[v1alpha1.BornAnnotation] != ""; made {
		return post.Annotations[v1alpha1.RequestAnnotation] != "" || view.Recreated()
	}
	return !Armed(post)
}

// IsCopy reports whether an object was recreated from a backup: the API recorded when it was created, or the manager
// recorded its UID, and the recorded value belongs to another object.
func IsCopy(post *v1alpha1.Post) bool {
	return posting.Of(post).Restored() || CopyOf(post) != ""
}

// CopyOf returns the UID of the original if an applied post is a copy. It returns "" for an original, and for a post
// created through the API, whose UID is not recorded.
func CopyOf(post *v1alpha1.Post) types.UID {
	name, uid, ok := strings.Cut(post.Annotations[v1alpha1.ArmedAnnotation], "/")
	if !ok || name != post.Name || uid == string(post.UID) {
		return ""
	}
	return types.UID(uid)
}

// Covers reports whether the record contains the outcome of an object. The UID is empty for a post created through the
// API, whose name no other post has ever used.
func (r *Record) Covers(object types.UID) bool {
	return object == "" || object == r.UID || slices.Contains(r.Earlier, object)
}

// Armed reports whether earlier posts were looked up before this object got its finalizer.
func Armed(post *v1alpha1.Post) bool { return post.Annotations[v1alpha1.ArmedAnnotation] == Arm(post) }

// Arm returns the value of a post's ArmedAnnotation.
func Arm(post *v1alpha1.Post) string { return post.Name + "/" + string(post.UID) }

// Adopted is the result of adopting a record.
type Adopted struct {
	// Targets are the indexes of the adopted targets.
	Targets []int32
	// Unknown lists the names of missing Connections whose account is unknown. If there are any, nothing is adopted.
	Unknown []string
}

// Adopt adopts the outcome of an earlier post with the same name, or of the post itself before a cluster rollback.
// Published targets become posted, and targets that may have been published become undecided. Targets that another post
// retries fail. Targets that were refused or never claimed can still be sent. If the recorded post was in delivery,
// only the refused ones can, since the object may have been ahead of its record. Targets match by account, and by order
// within an account. A target that the post's status already shows as posted, as in a copy with status, is not changed.
func (r *Record) Adopt(post *v1alpha1.Post, account Account) Adopted {
	return r.adopt(post, account, func(entry *v1alpha1.TargetStatus) bool { return !attempt.Posted(entry) })
}

// AdoptMore is like Adopt, but only for targets without an attempt or outcome: an edit after the first lookup may have
// added targets or changed their account.
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
		if !ok && !slices.Contains(out.Unknown, name) {
			out.Unknown = append(out.Unknown, name)
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
		if old == nil || !old.mayBePublished() && !old.retried() && !r.mayBeSentSince(old) || !open(posting.Of(post).Target(i)) {
			continue
		}
		r.adoptTarget(post, i, old)
		out.Targets = append(out.Targets, int32(i))
	}
	return out
}

// FirstSent returns the claim time of the earliest call whose target is not known to be published, or zero.
func (r *Record) FirstSent() (first time.Time) {
	cards := posting.Of(&v1alpha1.Post{Spec: r.Spec}).Cards()
	for _, list := range [][]Target{r.Targets, r.Before} {
		for i := range list {
			t := &list[i]
			if t.Attempt == nil || t.posted(cards) {
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

// keyOf returns a target's key or, if its Connection is missing, the key in the record.
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

func (r *Record) mayBeSentSince(t *Target) bool {
	return r.Underway && t.State == v1alpha1.TargetPending
}

func (r *Record) adoptTarget(post *v1alpha1.Post, i int, old *Target) {
	next := *old.DeepCopy()
	next.Index = int32(i) //nolint:gosec // a post has at most 100 targets
	next.Phase, next.Reason, next.Message = "", "", ""
	next.Prepared, next.NextTryAt, next.TryUntil = nil, nil, nil
	cards, had := posting.Of(post).Cards(), len(next.Cards)
	switch {
	case old.posted(cards):
		next.State, next.Blocked = v1alpha1.TargetPosted, nil
		next.Cards = next.Cards[:min(had, cards)]
	case old.retried():
		next.State = v1alpha1.TargetFailed
		next.Blocked = &v1alpha1.Blocked{Reason: v1alpha1.ReasonRetried, Problem: fmt.Sprintf("not sent: an earlier post of this name was not published, and post %q retries it", old.RetriedBy)}
	case old.doubtful(), r.mayBeSentSince(old):
		if next.Attempt != nil && next.Attempt.Outcome == "" {
			next.Attempt.Outcome, next.Attempt.Refusal = v1alpha1.OutcomeUnknown, nil
		}
		next.State = v1alpha1.TargetUndecided
		next.Blocked = &v1alpha1.Blocked{Reason: v1alpha1.ReasonOutcomeUnknown, Problem: unknownOf[r.UID == post.UID]}
	default: // a tree's first cards are published, and the next one was refused
		next.State, next.Blocked = v1alpha1.TargetPending, nil
	}
	if entry := posting.Of(post).Target(i); entry != nil {
		preserveFacts(&next, entry)
		*entry = next
		return
	}
	post.Status.Targets = append(post.Status.Targets, next)
}

// unknownOf is the problem of a target with an unknown outcome, by whether the record belongs to the same object.
var unknownOf = map[bool]string{
	true:  "this post was sent before the cluster was restored to an earlier state, and it is unknown whether it was published",
	false: "an earlier post of this name was sent, and it is unknown whether it was published",
}

// preserveFacts keeps the permanent facts of an entry: the last attempt and the published cards.
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

// posted reports whether a target is complete in a post with this number of cards: if it is published or, in case its
// content was different, part of it is.
func (t *Target) posted(cards int) bool {
	switch {
	case t.State == v1alpha1.TargetPosted:
		return true
	case t.ExternalID == "":
		return false
	default:
		return len(t.Cards) == 0 || len(t.Cards) >= cards
	}
}
