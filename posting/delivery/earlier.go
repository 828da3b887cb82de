// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/record"
)

// EarlierState shows whether an earlier post with the same name has been looked up.
type EarlierState int

// The states of the lookup.
const (
	// EarlierNotFetched: the archive has not been read yet.
	EarlierNotFetched EarlierState = iota
	// EarlierFetched: the archive returned the record, or there is none.
	EarlierFetched
	// EarlierUnavailable: the archive does not respond.
	EarlierUnavailable
	// EarlierDisabled: this installation does not keep records.
	EarlierDisabled
)

// Earlier is the result of looking up an earlier post with the same name.
type Earlier struct {
	State EarlierState
	// Record is the earlier post's record, or nil if there is none.
	Record *record.Record
	// Problem explains why the archive is unavailable.
	Problem string
}

// resolveEarlier returns the actions that look up and record the outcome of an earlier post with the same name before
// the first call. It returns none if the post may proceed.
func (f *Facts) resolveEarlier() []Action {
	if !f.earlierDue() {
		return f.earlierOnceMore()
	}
	if actions := f.lookupOpenFirst(); actions != nil {
		return actions
	}
	switch f.Earlier.State {
	case EarlierNotFetched:
		return []Action{FindEarlier{}}
	case EarlierUnavailable:
		if f.Cancelled() {
			return []Action{f.waitCancelled()}
		}
		return f.waitForRecord(f.earlierDeadline(), f.uncertainCopy(), "cannot look up whether an earlier post of this name was published: "+f.Earlier.Problem)
	case EarlierFetched:
		return f.recordEarlier()
	case EarlierDisabled:
		return f.recordCopy()
	}
	return nil
}

// earlierOnceMore reads an earlier post's record again when this post is due, because an edit may have added targets,
// or a Connection may have been recreated for another account. It returns no actions if the post may proceed.
func (f *Facts) earlierOnceMore() []Action {
	post := f.Post
	if f.Unowned || post.Status.Finished || post.Spec.Draft || f.Cancelled() || f.Started() || f.UntilDue(f.Now) > 0 ||
		!hasEarlierRecord(post) || post.Status.Earlier.PublishAgain {
		return nil
	}
	switch f.Earlier.State {
	case EarlierNotFetched:
		return []Action{FindEarlier{}}
	case EarlierUnavailable:
		return f.waitForRecord(time.Time{}, nil, "cannot look up whether an earlier post of this name was published to these accounts: "+f.Earlier.Problem)
	case EarlierFetched:
		return f.adoptRemaining()
	case EarlierDisabled:
	}
	return nil
}

func (f *Facts) adoptRemaining() []Action {
	post, found := f.Post, f.Earlier.Record
	if found == nil {
		return nil
	}
	entered := found.AdoptMore(post, f.account)
	switch {
	case len(entered.Unknown) > 0:
		return f.blockUnknownAccounts(entered)
	case len(entered.Targets) == 0:
		return nil
	}
	post.Status.Earlier.Record = string(found.UID)
	post.Status.Earlier.Targets = slices.Compact(slices.Sorted(slices.Values(slices.Concat(post.Status.Earlier.Targets, entered.Targets))))
	f.ensureTargets()
	return []Action{Write{Event{Warning: true, Reason: v1alpha1.ReasonAlreadyPublished, Message: alreadyPublishedMessage(post)}}}
}

// recordCopy records that a post is a copy, in an installation without records. Its status then describes this object.
func (f *Facts) recordCopy() []Action {
	if !record.IsCopy(f.Post) {
		return nil
	}
	f.Post.Status.Earlier = &v1alpha1.EarlierPost{Object: string(f.Post.UID)}
	if f.isUnrecordedCopy(nil) {
		return f.markUndecided(restored)
	}
	return nil
}

// earlierDue reports whether it is time to find out about the earlier post. For a post that an older version of Herald
// accepted, that is when it is due; for a copy restored with its status, it is at once.
func (f *Facts) earlierDue() bool {
	if f.Unowned || !f.requiresEarlier() {
		return false
	}
	return !f.accepted() || record.IsCopy(f.Post) || f.UntilDue(f.Now) <= 0
}

// isUnrecordedCopy reports whether the post is a due copy of a post whose outcome is not known, because its entries may
// be older than the publication. If a record covers the original, it contains the outcome. mayHaveBeenSent handles
// copies without entries or a record.
func (f *Facts) isUnrecordedCopy(found *record.Record) bool {
	if len(f.Post.Status.Targets) == 0 && found == nil && !f.Cancelled() || !f.dueCopy() {
		return false
	}
	return found == nil || !found.Covers(record.CopyOf(f.Post))
}

func (f *Facts) markUndecided(why v1alpha1.Blocked) []Action {
	f.ensureTargets()
	var asked bool
	for i := range f.Post.Spec.Targets {
		if t := f.Target(i); !attempt.Settled(t) {
			fail(t, why)
			asked = true
		}
	}
	if !asked {
		return nil
	}
	return []Action{Write{}}
}

func (f *Facts) accepted() bool {
	return meta.IsStatusConditionTrue(f.Post.Status.Conditions, v1alpha1.ConditionAccepted)
}

// lookupOpenFirst looks up the open attempts of a copy restored with its status, before later records are adopted.
func (f *Facts) lookupOpenFirst() []Action {
	if lookups := f.dueLookups(); len(lookups) > 0 {
		return []Action{Lookup{lookups}}
	}
	if f.anyOpen() {
		return []Action{f.wait(time.Time{}, true)}
	}
	return nil
}

func (f *Facts) anyOpen() bool {
	for i := range f.Post.Status.Targets {
		if attempt.IsOpen(f.Post.Status.Targets[i].Attempt) {
			return true
		}
	}
	return false
}

// recordEarlier records the archive's response. Targets that may have been published are stored at once; the absence of
// a record is stored with the next write.
func (f *Facts) recordEarlier() []Action {
	post, found := f.Post, f.Earlier.Record
	known := &v1alpha1.EarlierPost{Object: string(post.UID)}
	var adopted bool
	switch {
	case found == nil:
		post.Status.Earlier = known
	case record.IsCopy(post) && f.wasCancelled(record.CopyOf(post)):
		return f.cancelAgain(known)
	default:
		var actions []Action
		if adopted, actions = f.adopt(known); actions != nil || known.PublishAgain {
			return actions
		}
	}
	var actions []Action
	if f.isUnrecordedCopy(found) {
		actions = f.markUndecided(restored)
	}
	if f.Cancelled() && (adopted || actions != nil) {
		f.failUnsent()
	}
	if !adopted {
		return actions
	}
	return append([]Action{Write{Event{Warning: true, Reason: v1alpha1.ReasonAlreadyPublished, Message: alreadyPublishedMessage(post)}}}, actions...)
}

// wasCancelled reports whether, according to the record, an object was cancelled before its first call.
func (f *Facts) wasCancelled(object types.UID) bool {
	found := f.Earlier.Record
	return found != nil && found.Phase == v1alpha1.PhaseCancelled && found.Covers(object) && f.Post.Annotations[v1alpha1.PublishAgainAnnotation] != string(found.UID) &&
		!f.Started() && len(undecided(f.Post)) == 0
}

// cancelAgain cancels a post that was cancelled according to its record. The object may not show it: a backup without
// status contains the spec that was applied after the cancellation.
func (f *Facts) cancelAgain(known *v1alpha1.EarlierPost) []Action {
	found := f.Earlier.Record
	known.Record = string(found.UID)
	f.Post.Status.Earlier = known
	f.Post.Status.CancelledAt = cmp.Or(found.FinishedAt, v1alpha1.NewTimePtr(f.Now))
	return []Action{cancel()}
}

// adopt adopts the found record and stores its UID. It returns actions if a target's account cannot be determined.
func (f *Facts) adopt(known *v1alpha1.EarlierPost) (adopted bool, actions []Action) {
	post, found, before := f.Post, f.Earlier.Record, f.Post.Status.Earlier
	known.Record = string(found.UID)
	known.PublishAgain = found.UID != post.UID && post.Annotations[v1alpha1.PublishAgainAnnotation] == known.Record
	post.Status.Earlier = known
	if known.PublishAgain {
		return false, nil
	}
	entered := found.Adopt(post, f.account)
	if len(entered.Unknown) > 0 {
		post.Status.Earlier = before
		return false, f.blockUnknownAccounts(entered)
	}
	known.Targets = entered.Targets
	if first := found.FirstSent(); !first.IsZero() {
		known.SentAt = v1alpha1.NewTimePtr(first)
	}
	if len(entered.Targets) == 0 {
		return false, nil
	}
	f.ensureTargets()
	return true, nil
}

func (f *Facts) blockUnknownAccounts(adopted record.Adopted) []Action {
	problem := fmt.Sprintf("an earlier post of this name was published, and it is unknown whether it was published to the accounts of missing connections: %s",
		strings.Join(adopted.Unknown, ", "))
	return f.blockAllFor(v1alpha1.ReasonConnectionNotFound, problem, func(int) v1alpha1.Blocked {
		return v1alpha1.Blocked{Reason: v1alpha1.ReasonConnectionNotFound, Problem: problem, Remedy: remedies[v1alpha1.ReasonConnectionNotFound]}
	})
}

func (f *Facts) account(connection string) (v1alpha1.Platform, string, bool) {
	conn := f.Connections[connection]
	if conn == nil {
		return "", "", false
	}
	return conn.Spec.Platform, conn.Spec.AccountID, true
}

// onlyAdopted reports whether nothing has been sent for this object yet, although earlier posts published some of its
// targets. Such a post is validated and scheduled like any other.
func (f *Facts) onlyAdopted() bool {
	return adopts(f.Post) && !f.anyOpen() && (!f.accepted() || f.UntilDue(f.Now) > 0)
}

func adopts(post *v1alpha1.Post) bool {
	return post.Status.Earlier != nil && len(post.Status.Earlier.Targets) > 0
}

func hasEarlierRecord(post *v1alpha1.Post) bool {
	earlier := post.Status.Earlier
	return earlier != nil && earlier.Object == string(post.UID) && earlier.Record != ""
}

func describeAdopted(post *v1alpha1.Post, now time.Time) {
	if !adopts(post) {
		meta.RemoveStatusCondition(&post.Status.Conditions, v1alpha1.ConditionAdopted)
		return
	}
	setCondition(post, now, v1alpha1.ConditionAdopted, metav1.ConditionTrue, v1alpha1.ReasonAlreadyPublished,
		text.Truncate(alreadyPublishedMessage(post), maxConditionMessage))
}

func alreadyPublishedMessage(post *v1alpha1.Post) string {
	earlier := post.Status.Earlier
	var targets []string
	for n, index := range earlier.Targets {
		if n == maxNamed {
			targets = append(targets, fmt.Sprintf("and %d more", len(earlier.Targets)-n))
			break
		}
		targets = append(targets, targetWord(post, int(index)))
	}
	what := fmt.Sprintf("an earlier post of this name (uid %s) was already sent", earlier.Record)
	if earlier.Record == string(post.UID) {
		what = "this post was already sent, before the cluster was restored to an earlier state"
	}
	message := fmt.Sprintf("%s, with these outcomes: %s. None of this is sent again, even if the "+
		"content differs. To publish it again, delete this post and apply it again with the annotation\n  %s: %s",
		what, strings.Join(targets, ", "), v1alpha1.PublishAgainAnnotation, post.UID)
	if asked := post.Annotations[v1alpha1.PublishAgainAnnotation]; asked != "" {
		message += fmt.Sprintf("\nThe annotation names %q, which is not the latest record and has no effect.", text.Truncate(asked, maxUID))
	}
	return message
}

const (
	maxNamed = 5
	// maxUID is the maximum length of the quotation from an annotation that is not a UID.
	maxUID = 64
)

func targetWord(post *v1alpha1.Post, index int) string {
	t := posting.Of(post).Target(index)
	if t == nil {
		return fmt.Sprintf("target %d", index)
	}
	word := fmt.Sprintf("target %d (%s) is %s", index, t.Platform, posting.StateOf(t))
	if t.ExternalURL != "" {
		word += " at " + t.ExternalURL
	}
	return word
}
