// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lists stores lists of archived posts in the bucket, by team: one list per filter, newest display time first.
// One process writes them; any number may read them.
//
// A team's files are below _herald/archive/<namespace>/<team>/:
//
//   - index is the only file that changes. It holds the most recently archived posts (the head) and the name of the
//     manifest. One conditional write replaces it, so every change is atomic.
//   - segments/<id> are immutable files, named by their hash. The manifest is one of them: it lists the segments of
//     each list, with the first key and the number of posts of each. The others hold summaries, in order, or hashes of
//     names.
//
// When the head is full, it is merged into the segments that it affects: the writer stores the new segments, then the
// new manifest, then the index. Files that are no longer used are removed later, since a reader may still need them.
//
// A reader keeps the index, the manifest and the hashes of names in memory, and reads the one or two segments that a
// page needs.
package lists

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
)

// ErrDamaged means that a file in the store is not as Herald wrote it.
var ErrDamaged = errors.New("a list of archived posts in the store is damaged")

// Bucket is the store; *store.Store implements it.
type Bucket interface {
	ReadDocument(ctx context.Context, key, known string, most int64) (data []byte, etag string, err error)
	PutDocument(ctx context.Context, key, mimeType string, data []byte, etag string) (newETag string, err error)
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, prefix string) iter.Seq2[store.Object, error]
}

var _ Bucket = (*store.Store)(nil)

// Team identifies the team whose posts are listed. A re-created Team with the same names is the same team.
type Team struct{ Namespace, Name string }

// prefix is the folder of a team's lists. No namespace is named _herald.
func (t Team) prefix() string { return "_herald/archive/" + t.Namespace + "/" + t.Name + "/" }

func (t Team) index() string { return t.prefix() + "index" }

func (t Team) segments() string { return t.prefix() + "segments/" }

func (t Team) segment(id ID) string { return fmt.Sprintf("%s%x", t.segments(), id[:]) }

// Target is one target of a post, as a list shows it.
type Target struct {
	Platform v1alpha1.Platform
	Status   v1alpha1.PostPhase
	// Mark refines the status. It is only ever v1alpha1.MarkUndecided: a finished target is not waiting for anything.
	Mark v1alpha1.TargetMark
}

// undecided is the status that files store for a failed target whose outcome only a user can determine.
const undecided = "undecided"

func (t Target) word() string {
	if t.Mark == v1alpha1.MarkUndecided {
		return undecided
	}
	return string(t.Status)
}

func targetOf(platform, word string) Target {
	if word == undecided {
		return Target{v1alpha1.Platform(platform), v1alpha1.PhaseFailed, v1alpha1.MarkUndecided}
	}
	return Target{Platform: v1alpha1.Platform(platform), Status: v1alpha1.PostPhase(word)}
}

// Kind holds the properties that many posts share.
type Kind struct {
	Status   v1alpha1.PostPhase
	Category v1alpha1.Category
	// Agent is the name of the agent that made the post, or empty if no agent did.
	Agent string
	// Targets are in the order of the post's targets. They are read-only.
	Targets []Target
}

// Entry is a post as the lists store it.
type Entry struct {
	Kind

	// Name is the Post's name: a team's lists have one entry for it. UID is the UID of the archived object.
	Name, UID string
	Title     string
	// DisplayAt orders the lists. FinishedAt starts the retention period. Both have millisecond precision.
	DisplayAt, FinishedAt time.Time
	// Bytes is the post's size, as counted against the team's budget.
	Bytes int
}

// Ref names an archived post.
type Ref struct{ Name, UID string }

// Stats describes a team's lists.
type Stats struct {
	// Revision increases with each change to the lists.
	Revision int64
	// Posts is the number of archived posts, including cancelled ones, which no list shows.
	Posts int64
}

// Filter selects the posts of a list; empty fields match all.
type Filter struct {
	Status   v1alpha1.PostPhase
	Platform v1alpha1.Platform
}

// hidden is the filter of a list that is never shown. The list exists so that cancelled posts are found when they
// expire.
var hidden = Filter{Status: v1alpha1.PhaseCancelled}

func (k *Kind) filters() []Filter {
	if k.Status == v1alpha1.PhaseCancelled {
		return []Filter{hidden}
	}
	out := make([]Filter, 0, 2+2*len(k.Targets))
	out = append(out, Filter{}, Filter{Status: k.Status})
	for i, t := range k.Targets {
		again := false
		for _, before := range k.Targets[:i] {
			again = again || before.Platform == t.Platform
		}
		if t.Platform != "" && !again {
			out = append(out, Filter{Platform: t.Platform}, Filter{k.Status, t.Platform})
		}
	}
	if IsBeyondVersion1(k.Targets) {
		out = append(out, Filter{Platform: BeyondVersion1}, Filter{k.Status, BeyondVersion1})
	}
	return out
}

// BeyondVersion1 stands for all platforms that version 1 of the API does not have. A filter with it selects the posts
// that go only to such platforms. No platform has this name.
const BeyondVersion1 v1alpha1.Platform = "beyond-v1"

// IsBeyondVersion1 reports whether version 1 of the API has none of the platforms of a post's targets. A target whose
// platform is unknown does not count.
func IsBeyondVersion1(targets []Target) bool {
	beyond := false
	for i := range targets {
		if targets[i].Platform.InVersion1() {
			return false
		}
		beyond = beyond || targets[i].Platform != ""
	}
	return beyond
}

// Passes reports whether posts of kind k are in this filter's list.
func (f Filter) Passes(k *Kind) bool {
	if (k.Status == v1alpha1.PhaseCancelled) != (f == hidden) || f.Status != "" && f.Status != k.Status {
		return false
	}
	if f.Platform == "" {
		return true
	}
	if f.Platform == BeyondVersion1 {
		return IsBeyondVersion1(k.Targets)
	}
	for _, t := range k.Targets {
		if t.Platform == f.Platform {
			return true
		}
	}
	return false
}

// SortKey is a post's position in a list. Lists are sorted by time, newest first, and then by name.
type SortKey struct {
	// DisplayAt is in milliseconds since 1970.
	DisplayAt int64
	Name      string
}

// Compare returns a negative number if k comes before other.
func (k SortKey) Compare(other SortKey) int {
	return cmp.Or(cmp.Compare(other.DisplayAt, k.DisplayAt), strings.Compare(k.Name, other.Name))
}

// Row is an entry in memory.
type Row struct {
	SortKey

	Kind  *Kind
	Title string
	// uid is in packed form; finished is in milliseconds since 1970.
	uid      string
	finished int64
	bytes    int64
}

func (r *Row) key() SortKey { return r.SortKey }

func (r *Row) finishedAt() int64 { return r.finished }

func (r *Row) same(other *Row) bool {
	return r.uid == other.uid && r.DisplayAt == other.DisplayAt && r.name().sameLists(other.name())
}

func rowOf(e *Entry, kinds *kinds) (*Row, error) {
	const longest = 253 // of a Kubernetes name
	switch {
	case e.Name == "" || len(e.Name) > longest || e.UID == "" || len(e.UID) > longest:
		return nil, fmt.Errorf("cannot archive post %q of uid %q: both need 1 to %d characters", e.Name, e.UID, longest)
	case e.Status != v1alpha1.PhasePosted && e.Status != v1alpha1.PhaseFailed && e.Status != v1alpha1.PhaseCancelled:
		return nil, fmt.Errorf("cannot archive post %q: it is %s, and only finished ones are archived", e.Name, e.Status)
	case len(e.Title) > maxText || len(e.Agent) > maxText || len(e.Targets) > maxTargets:
		return nil, fmt.Errorf("cannot archive post %q: its title, its agent or its targets are too long for a list", e.Name)
	}
	return &Row{
		SortKey: SortKey{e.DisplayAt.UnixMilli(), e.Name}, Kind: kinds.intern(&e.Kind), Title: e.Title,
		uid: packUID(e.UID), finished: e.FinishedAt.UnixMilli(), bytes: int64(max(e.Bytes, 0)),
	}, nil
}

// nameRow maps a listed post's name to its lists and position. Rows are sorted by hash: one read finds any name.
type nameRow struct {
	hash uint64
	// uid is a hash of the UID.
	uid  uint64
	at   int64
	kind *Kind
}

// key orders the list of names by hash.
func (n *nameRow) key() SortKey { return SortKey{DisplayAt: -int64(n.hash >> 1)} }

func (n *nameRow) finishedAt() int64 { return math.MaxInt64 }

func (n *nameRow) sameLists(other *nameRow) bool {
	if n.kind.Status != other.kind.Status || len(n.kind.Targets) != len(other.kind.Targets) {
		return false
	}
	for i, t := range n.kind.Targets {
		if t != other.kind.Targets[i] {
			return false
		}
	}
	return true
}

func (r *Row) name() *nameRow {
	return &nameRow{hash: HashName(r.Name), uid: hashOf(r.uid), at: r.DisplayAt, kind: r.Kind}
}

// HashName returns the hash of a name in the lists: 63 bits of SHA-256.
func HashName(name string) uint64 { return hashOf(name) }

func hashOf(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.BigEndian.Uint64(sum[:]) >> 1 << 1
}
