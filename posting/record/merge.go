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

// accountKey matches targets by account or, if that is unknown, by Connection; equal keys match by order.
type accountKey struct {
	platform v1alpha1.Platform
	account  string
	// connection is empty if the account is known.
	connection string
}

// compare orders keys, to make merging deterministic.
func (e accountKey) compare(other accountKey) int {
	return cmp.Or(cmp.Compare(e.platform, other.platform), cmp.Compare(e.account, other.account), cmp.Compare(e.connection, other.connection))
}

func (t *Target) key() accountKey {
	if t.AccountID == "" {
		return accountKey{connection: t.Connection}
	}
	return accountKey{platform: t.Platform, account: t.AccountID}
}

// mayBePublished reports whether a target, or part of it, may have been published. It must not be sent again.
func (t *Target) mayBePublished() bool {
	return attempt.Posted(&t.TargetStatus) || t.ExternalID != "" || t.doubtful()
}

// retried reports whether the target was left to another post, which retries it.
func (t *Target) retried() bool { return t.RetriedBy != "" }

func (t *Target) doubtful() bool {
	return attempt.Undecided(&t.TargetStatus) || attempt.IsOpen(t.Attempt) || attempt.AmbiguousSince(&t.TargetStatus) != nil
}

// undecidedWithoutCall reports whether a target is undecided without a call from its own object or a published part.
func (t *Target) undecidedWithoutCall() bool {
	return attempt.Undecided(&t.TargetStatus) && t.Attempt == nil && t.ExternalID == "" && len(t.Cards) == 0
}

// targetsByKey groups a record's targets by key, earlier posts' last. account fills in missing accounts. If it is nil,
// targets without a recorded account match only by Connection.
func (r *Record) targetsByKey(account Account) map[accountKey][]*Target {
	turns := map[accountKey][]*Target{}
	for _, list := range [][]Target{r.Targets, r.Before} {
		for i := range list {
			key := list[i].key()
			if account != nil {
				if platform, id, ok := account(key.connection); ok && (list[i].Platform == "" || list[i].Platform == platform) {
					key = accountKey{platform: platform, account: id}
				}
			}
			turns[key] = append(turns[key], &list[i])
		}
	}
	return turns
}

// Merge merges a record with the stored record of the same name. The record of the younger object takes precedence and,
// for the same object, the finished one. Missing facts are taken from the other record, so that published targets are
// never lost, regardless of the order of the writes.
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
	joined.Earlier = joined.Earlier[max(0, len(joined.Earlier)-maxEarlier):]

	turns, before := joined.targetsByKey(nil), older.targetsByKey(nil)
	var more []Target
	for _, key := range slices.SortedFunc(maps.Keys(before), accountKey.compare) {
		own := turns[key]
		for turn, old := range trimUnpublished(before[key]) {
			switch {
			case turn >= len(own):
				more = append(more, *old)
			case !old.mayBePublished():
			case !own[turn].mayBePublished(), attempt.Posted(&old.TargetStatus) && (older.UID == r.UID && !attempt.Posted(&own[turn].TargetStatus) || own[turn].undecidedWithoutCall()):
				// The second case occurs after a rollback of the cluster to a state before the record, and for a copy
				// that became undecided before the record was found.
				kept := *old
				kept.Index, kept.Connection = own[turn].Index, own[turn].Connection
				*own[turn] = kept
			}
		}
	}
	joined.Before = append(joined.Before, more...)
	return &joined
}

// trimUnpublished drops unpublished targets from the end of a group. It keeps those before a published target, because
// targets match by order.
func trimUnpublished(equal []*Target) []*Target {
	for len(equal) > 0 && !equal[len(equal)-1].mayBePublished() {
		equal = equal[:len(equal)-1]
	}
	return equal
}
