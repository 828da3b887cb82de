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

// EarlierState is what the pass knows of an earlier post of the name.
type EarlierState int

// The states of that knowledge.
const (
	// EarlierNotFetched: the archive was not asked yet.
	EarlierNotFetched EarlierState = iota
	// EarlierFetched: it was asked, and answered with the record or that there is none.
	EarlierFetched
	// EarlierUnavailable: it does not answer.
	EarlierUnavailable
	// EarlierDisabled: this installation keeps no records.
	EarlierDisabled
)

// Earlier is what the pass knows of an earlier post of the name.
type Earlier struct {
	State EarlierState
	// Record is that of the earlier post; nil if there is none.
	Record *record.Record
	// Problem says why the archive does not answer.
	Problem string
}

// resolveEarlier finds out, before anything is sent for a post, what became of an earlier one of
// its name, and enters it. It returns no actions if the post goes on.
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
		if posting.Cancelled(f.Post) {
			return []Action{f.waitCancelled()}
		}
		return f.waitForRecord(f.earlierDeadline(), f.uncertainCopy(), "whether an earlier post of this name was published cannot be looked up: "+f.Earlier.Problem)
	case EarlierFetched:
		return f.recordEarlier()
	case EarlierDisabled:
		return f.recordCopy()
	}
	return nil
}

// earlierOnceMore looks at the record of an earlier post again when the time of this one has
// come: an edit may have brought targets since it was looked up, or a Connection may have been
// made anew for another account. It returns no actions if the post goes on.
func (f *Facts) earlierOnceMore() []Action {
	post := f.Post
	if f.Unowned || post.Status.Finished || post.Spec.Draft || posting.Cancelled(post) || posting.Started(post) || posting.UntilDue(post, f.Now) > 0 ||
		!hasEarlierRecord(post) || post.Status.Earlier.PublishAgain {
		return nil
	}
	switch f.Earlier.State {
	case EarlierNotFetched:
		return []Action{FindEarlier{}}
	case EarlierUnavailable:
		return f.waitForRecord(time.Time{}, nil, "whether an earlier post of this name was published to these accounts cannot be looked up: "+f.Earlier.Problem)
	case EarlierFetched:
		return f.adoptRemaining()
	case EarlierDisabled:
	}
	return nil
}

// adoptRemaining enters of the record what was not entered when it was found.
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
	return []Action{Write{Event{Warning: true, Reason: v1alpha1.ReasonAlreadyPublished, Message: alreadyPublished(post)}}}
}

// recordCopy enters, where no records are kept, that a copy was seen for what it is: what its
// status holds from then on is its own.
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

// earlierDue reports whether an earlier post matters now. For what an earlier version of
// Herald has accepted it does when it is due; for a copy that came with its status, at once.
func (f *Facts) earlierDue() bool {
	post := f.Post
	if f.Unowned || !f.requiresEarlier() {
		return false
	}
	return !f.accepted() || record.IsCopy(post) || posting.UntilDue(post, f.Now) <= 0
}

// isUnrecordedCopy reports whether a post is due that is a copy of an object of which nothing tells
// what became: what its entries say may be of before that was sent. A record tells if it has that
// object. Of a copy without entries and record, mayHaveBeenSent does the same.
func (f *Facts) isUnrecordedCopy(found *record.Record) bool {
	post := f.Post
	if len(post.Status.Targets) == 0 && found == nil && !posting.Cancelled(post) || !f.dueCopy() {
		return false
	}
	return found == nil || !found.Covers(record.CopyOf(post))
}

// markUndecided leaves to a person the targets that the entries of a post do not settle, for a
// reason. It returns no actions if there are none.
func (f *Facts) markUndecided(why v1alpha1.Blocked) []Action {
	f.ensureTargets()
	var asked bool
	for i := range f.Post.Spec.Targets {
		if t := posting.Target(f.Post, i); !attempt.Settled(t) {
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

// lookupOpenFirst has the open attempts of a copy that came with its status looked up: what
// was recorded later can be entered only then.
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

// recordEarlier enters what the archive has answered. What is out, or may be, is stored at
// once; that there is nothing is stored with the next write.
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
	if posting.Cancelled(post) && (adopted || actions != nil) {
		f.failUnsent()
	}
	if !adopted {
		return actions
	}
	return append([]Action{Write{Event{Warning: true, Reason: v1alpha1.ReasonAlreadyPublished, Message: alreadyPublished(post)}}}, actions...)
}

// wasCancelled reports whether the record says that an object was withdrawn before anything of it was sent.
func (f *Facts) wasCancelled(object types.UID) bool {
	found := f.Earlier.Record
	return found != nil && found.Phase == v1alpha1.PhaseCancelled && found.Covers(object) && f.Post.Annotations[v1alpha1.PublishAgainAnnotation] != string(found.UID) &&
		!posting.Started(f.Post) && len(undecided(f.Post)) == 0
}

// cancelAgain cancels a post whose record says that it was cancelled. Its object may lack that: a
// backup without status has the spec that a tool applied after the cancel.
func (f *Facts) cancelAgain(known *v1alpha1.EarlierPost) []Action {
	found := f.Earlier.Record
	known.Record = string(found.UID)
	f.Post.Status.Earlier = known
	f.Post.Status.CancelledAt = cmp.Or(found.FinishedAt, v1alpha1.NewTimePtr(f.Now))
	return []Action{cancel()}
}

// adopt enters the record that was found, and of which it was. It returns actions if it
// cannot be told of which targets it speaks.
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

// blockUnknownAccounts withholds a post of which it cannot be told whether it is out.
func (f *Facts) blockUnknownAccounts(adopted record.Adopted) []Action {
	problem := fmt.Sprintf("an earlier post of this name was published, and of connections that do not exist it cannot be told whether to their accounts: %s",
		strings.Join(adopted.Unknown, ", "))
	return f.blockAllFor(v1alpha1.ReasonConnectionNotFound, problem, func(int) v1alpha1.Blocked {
		return v1alpha1.Blocked{Reason: v1alpha1.ReasonConnectionNotFound, Problem: problem, Remedy: remedies[v1alpha1.ReasonConnectionNotFound]}
	})
}

// account is the account that a Connection names.
func (f *Facts) account(connection string) (v1alpha1.Platform, string, bool) {
	conn := f.Connections[connection]
	if conn == nil {
		return "", "", false
	}
	return conn.Spec.Platform, conn.Spec.AccountID, true
}

// onlyAdopted reports whether nothing was sent for this very object yet, although some of
// its targets are out: it is to be judged, and to wait for its time, as any other.
func (f *Facts) onlyAdopted() bool {
	return adopts(f.Post) && !f.anyOpen() && (!f.accepted() || posting.UntilDue(f.Post, f.Now) > 0)
}

// adopts reports whether targets of a post read what became of an earlier one.
func adopts(post *v1alpha1.Post) bool {
	return post.Status.Earlier != nil && len(post.Status.Earlier.Targets) > 0
}

// hasEarlierRecord reports whether the record of an earlier post has told what became of it.
func hasEarlierRecord(post *v1alpha1.Post) bool {
	earlier := post.Status.Earlier
	return earlier != nil && earlier.Object == string(post.UID) && earlier.Record != ""
}

// describeAdopted derives the condition that says which targets are out from before.
func describeAdopted(post *v1alpha1.Post, now time.Time) {
	if !adopts(post) {
		meta.RemoveStatusCondition(&post.Status.Conditions, v1alpha1.ConditionAdopted)
		return
	}
	setCondition(post, now, v1alpha1.ConditionAdopted, metav1.ConditionTrue, v1alpha1.ReasonAlreadyPublished,
		text.Truncate(alreadyPublished(post), maxConditionMessage))
}

// alreadyPublished says what was adopted, and how the post is published all the same.
func alreadyPublished(post *v1alpha1.Post) string {
	earlier := post.Status.Earlier
	var targets []string
	for n, index := range earlier.Targets {
		if n == mostNamed {
			targets = append(targets, fmt.Sprintf("and %d more", len(earlier.Targets)-n))
			break
		}
		targets = append(targets, targetWord(post, int(index)))
	}
	what := fmt.Sprintf("an earlier post of this name (uid %s) was sent already", earlier.Record)
	if earlier.Record == string(post.UID) {
		what = "this post was sent already, before the cluster was put back to an earlier state"
	}
	message := fmt.Sprintf("%s, and what became of it stands here: %s. None of this is sent again, also if the "+
		"content differs. To publish it again, delete this post and apply it anew with the annotation\n  %s: %s",
		what, strings.Join(targets, ", "), v1alpha1.PublishAgainAnnotation, post.UID)
	if asked := post.Annotations[v1alpha1.PublishAgainAnnotation]; asked != "" {
		message += fmt.Sprintf("\nThe annotation names %q, which is not the latest record and does nothing.", text.Truncate(asked, maxUID))
	}
	return message
}

const (
	// mostNamed is how many targets one condition names.
	mostNamed = 5
	// maxUID is how much of an annotation that is no uid is shown.
	maxUID = 64
)

// targetWord says how a target stands.
func targetWord(post *v1alpha1.Post, index int) string {
	t := posting.Target(post, index)
	if t == nil {
		return fmt.Sprintf("target %d", index)
	}
	word := fmt.Sprintf("target %d (%s) is %s", index, t.Platform, posting.StateOf(t))
	if t.ExternalURL != "" {
		word += " at " + t.ExternalURL
	}
	return word
}
