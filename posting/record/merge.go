// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/attempt"
)

// accountKey is what makes targets equal: the account that they go to, or the Connection where
// the account is not known. Among equals the turn counts.
type accountKey struct {
	platform v1alpha1.Platform
	account  string
	// connection is empty where the account is known.
	connection string
}

// compare orders equals, so that a record that is joined again is the same.
func (e accountKey) compare(other accountKey) int {
	return cmp.Or(cmp.Compare(e.platform, other.platform), cmp.Compare(e.account, other.account), cmp.Compare(e.connection, other.connection))
}

func (t *Target) key() accountKey {
	if t.AccountID == "" {
		return accountKey{connection: t.Connection}
	}
	return accountKey{platform: t.Platform, account: t.AccountID}
}

// mayBePublished reports whether something of a target is out, or may be: it must not be sent
// again.
func (t *Target) mayBePublished() bool {
	return attempt.Posted(&t.TargetStatus) || t.ExternalID != "" || t.doubtful()
}

// doubtful reports whether nobody knows whether the target's last call published.
func (t *Target) doubtful() bool {
	return attempt.Undecided(&t.TargetStatus) || attempt.IsOpen(t.Attempt) || attempt.AmbiguousSince(&t.TargetStatus) != nil
}

// undecidedWithoutCall reports whether a person is asked about a target for which its own object made no
// call, and of which nothing is known to be out.
func (t *Target) undecidedWithoutCall() bool {
	return attempt.Undecided(&t.TargetStatus) && t.Attempt == nil && t.ExternalID == "" && len(t.Cards) == 0
}

// noAccounts tells nothing, so that a target of which the record does not know the account
// is equal to those of its Connection alone.
func noAccounts(string) (v1alpha1.Platform, string, bool) { return "", "", false }

// targetsByKey sorts what became of targets by their equals, in their turn: those of the post,
// and then those of earlier ones that it did not have. Of a target of which the record does
// not know the account, account may tell it.
func (r *Record) targetsByKey(account Account) map[accountKey][]*Target {
	turns := map[accountKey][]*Target{}
	for _, list := range [][]Target{r.Targets, r.Before} {
		for i := range list {
			key := list[i].key()
			if platform, id, ok := account(key.connection); ok && (list[i].Platform == "" || list[i].Platform == platform) {
				key = accountKey{platform: platform, account: id}
			}
			turns[key] = append(turns[key], &list[i])
		}
	}
	return turns
}

// Merge joins a record with the one that lies under its name. The record of the younger
// object stays, or of one object that of when it was finished, and keeps of the other one what
// it does not have: what is out is never forgotten, whichever of them is written last.
func (r *Record) Merge(before *Record) *Record {
	switch {
	case before == nil:
		return r
	case before.UID != r.UID && before.CreatedAt.After(r.CreatedAt.Time), before.UID == r.UID && before.FinishedAt != nil && r.FinishedAt == nil:
		return before.mergeOlder(r)
	default:
		return r.mergeOlder(before)
	}
}

func (r *Record) mergeOlder(older *Record) *Record {
	joined := *r
	joined.Targets, joined.Before = slices.Clone(r.Targets), slices.Clone(r.Before)
	joined.Earlier = nil
	for _, uid := range slices.Concat(older.Earlier, []types.UID{older.UID}, r.Earlier) {
		if uid != r.UID && !slices.Contains(joined.Earlier, uid) {
			joined.Earlier = append(joined.Earlier, uid)
		}
	}
	joined.Earlier = joined.Earlier[max(0, len(joined.Earlier)-mostEarlier):]

	turns, before := joined.targetsByKey(noAccounts), older.targetsByKey(noAccounts)
	var more []Target
	for _, key := range slices.SortedFunc(maps.Keys(before), accountKey.compare) {
		own := turns[key]
		for turn, old := range trimUnpublished(before[key]) {
			switch {
			case turn >= len(own):
				more = append(more, *old)
			case !old.mayBePublished():
			case !own[turn].mayBePublished(), attempt.Posted(&old.TargetStatus) && (older.UID == r.UID && !attempt.Posted(&own[turn].TargetStatus) || own[turn].undecidedWithoutCall()):
				// The second is of a cluster that was put back to before what the record tells, or of a
				// copy about which a person was asked before the record was found.
				kept := *old
				kept.Index, kept.Connection = own[turn].Index, own[turn].Connection
				*own[turn] = kept
			}
		}
	}
	joined.Before = append(joined.Before, more...)
	return &joined
}

// trimUnpublished leaves out the end of equal targets of which nothing is out. What does
// not count before one that does keeps its place, for the turn of the other.
func trimUnpublished(equal []*Target) []*Target {
	for len(equal) > 0 && !equal[len(equal)-1].mayBePublished() {
		equal = equal[:len(equal)-1]
	}
	return equal
}
