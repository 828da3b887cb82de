// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lists keeps lists of archived posts in the store, by team: one for every filter that
// a list may have, newest display time first. One process writes them, any number reads.
//
// What a team has lies below _herald/archive/<namespace>/<team>/:
//
//   - index is the only file that changes: the posts archived last, the head, and the name of
//     the manifest. One conditional write replaces it, so that each change happens as a whole
//     or not at all.
//   - segments/<id> are files that never change, named by their hash. A manifest says which
//     segments make up each list, with the first key and the number of posts of each; the
//     other segments hold summaries, in order, or the hashes of names.
//
// A full head is merged into the segments that it touches: first the new segments are written,
// then the new manifest, then the index. What is not used any more is removed later, since a
// reader may still be at it.
//
// A reader keeps index, manifest and hashes of names in memory, and reads the segment or two
// that a page lies in.
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

// ErrDamaged is that a file in the store is not what was written there.
var ErrDamaged = errors.New("a list of archived posts in the store is damaged")

// Bucket is the store; *store.Store is one.
type Bucket interface {
	ReadDocument(ctx context.Context, key, known string, most int64) (data []byte, etag string, err error)
	PutDocument(ctx context.Context, key, mimeType string, data []byte, etag string) (newETag string, err error)
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, prefix string) iter.Seq2[store.Object, error]
}

var _ Bucket = (*store.Store)(nil)

// Team is whose posts they are. A Team that is made anew under its name, in its namespace, is
// the same one.
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
	// Mark is what the status does not show. The archive keeps v1alpha1.MarkUndecided alone:
	// nothing that is finished waits.
	Mark v1alpha1.TargetMark
}

// undecided stands in the files in place of the status of a target that has failed, and whose
// outcome only a person can tell.
const undecided = "undecided"

// word is the status of a target as the files hold it.
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

// Kind is what many posts have in common.
type Kind struct {
	Status   v1alpha1.PostPhase
	Category v1alpha1.Category
	// Agent is the name of the agent that made the post; empty for any other.
	Agent string
	// Targets are in their order. They are only read.
	Targets []Target
}

// Entry is what the lists keep of a post.
type Entry struct {
	Kind

	// Name is that of the Post: a team's lists hold one entry under it. UID is that of the
	// object that was archived.
	Name, UID string
	Title     string
	// DisplayAt orders the lists, and FinishedAt says when the post's time in the archive
	// begins. Both are kept to the millisecond.
	DisplayAt, FinishedAt time.Time
	// Bytes is how much the post took of its team's budget.
	Bytes int
}

// Ref names an archived post.
type Ref struct{ Name, UID string }

// Stats is how a team's lists stand.
type Stats struct {
	// Revision grows with each change of the lists.
	Revision int64
	// Posts is how many they hold, cancelled ones among them, which no list shows.
	Posts int64
}

// Filter says what a list is narrowed to; what is empty narrows nothing.
type Filter struct {
	Status   v1alpha1.PostPhase
	Platform v1alpha1.Platform
}

// hidden is the list of those that no list shows: cancelled ones can be read until their time
// is over, and are found here when it is.
var hidden = Filter{Status: v1alpha1.PhaseCancelled}

// filters are the lists that a post of a kind is on, each once.
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
	return out
}

// Passes reports whether a list of this filter has posts of a kind.
func (f Filter) Passes(k *Kind) bool {
	if (k.Status == v1alpha1.PhaseCancelled) != (f == hidden) || f.Status != "" && f.Status != k.Status {
		return false
	}
	if f.Platform == "" {
		return true
	}
	for _, t := range k.Targets {
		if t.Platform == f.Platform {
			return true
		}
	}
	return false
}

// Key is the place of a post in a list: a greater time comes first, and equal times are in the
// order of names.
type Key struct {
	// DisplayAt is in milliseconds since 1970.
	DisplayAt int64
	Name      string
}

// Compare is negative if k comes before the other.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(other.DisplayAt, k.DisplayAt), strings.Compare(k.Name, other.Name))
}

// Row is an entry as it is kept in memory.
type Row struct {
	Key

	Kind  *Kind
	Title string
	// uid is packed, and finished in milliseconds since 1970.
	uid      string
	finished int64
	bytes    int64
}

func (r *Row) key() Key { return r.Key }

func (r *Row) finishedAt() int64 { return r.finished }

// same reports whether two rows say the same.
func (r *Row) same(other *Row) bool {
	return r.uid == other.uid && r.DisplayAt == other.DisplayAt && r.name().sameLists(other.name())
}

// rowOf checks an entry and returns it as a row.
func rowOf(e *Entry, kinds *kinds) (*Row, error) {
	const longest = 253 // of a name in Kubernetes
	switch {
	case e.Name == "" || len(e.Name) > longest || e.UID == "" || len(e.UID) > longest:
		return nil, fmt.Errorf("cannot archive post %q of uid %q: both need 1 to %d characters", e.Name, e.UID, longest)
	case e.Status != v1alpha1.PhasePosted && e.Status != v1alpha1.PhaseFailed && e.Status != v1alpha1.PhaseCancelled:
		return nil, fmt.Errorf("cannot archive post %q: it is %s, and only finished ones are archived", e.Name, e.Status)
	case len(e.Title) > maxText || len(e.Agent) > maxText || len(e.Targets) > maxTargets:
		return nil, fmt.Errorf("cannot archive post %q: its title, its agent or its targets are too long for a list", e.Name)
	}
	return &Row{
		Key: Key{e.DisplayAt.UnixMilli(), e.Name}, Kind: kinds.intern(&e.Kind), Title: e.Title,
		uid: packUID(e.UID), finished: e.FinishedAt.UnixMilli(), bytes: int64(max(e.Bytes, 0)),
	}, nil
}

// nameRow tells of a name under which a post is listed which lists it is on, and where. Its
// list is in the order of hashes, so that one read finds a name among many.
type nameRow struct {
	hash uint64
	// uid is a hash of the UID.
	uid  uint64
	at   int64
	kind *Kind
}

// key makes the list of names one like the others.
func (n *nameRow) key() Key { return Key{DisplayAt: -int64(n.hash >> 1)} }

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

// HashName is what the lists keep of a name to find it again. It has 63 bits of SHA-256.
func HashName(name string) uint64 { return hashOf(name) }

func hashOf(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.BigEndian.Uint64(sum[:]) >> 1 << 1
}
