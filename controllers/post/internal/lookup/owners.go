// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Owners knows which platform ids belong to which post, so that a lookup does not
// take another post's publication for the one it searches. What this process
// recorded it remembers; what earlier ones recorded it reads from the API server
// when a lookup needs it (see load).
type Owners struct {
	reader client.Reader
	clock  clock.Clock

	mu          sync.Mutex
	startedAt   time.Time
	byID        map[externalKey]ownership
	unconfirmed map[unconfirmedKey]ownership
	loaded      map[string]time.Time
	pruned      time.Time
	// flights are the readings that are under way, by namespace.
	flights map[string]*flight
}

// externalKey is a post of an account. An id alone would let one team take away what
// another one's account has published.
type externalKey struct {
	platform    v1alpha1.Platform
	account, id string
}

// unconfirmedKey is an id that a person told for a post of a namespace, and the platform did not
// confirm. It takes nothing away from others, whose namespaces are not concerned. But it
// may be true: what is found under it for another post of the namespace is not certainly
// that one's.
type unconfirmedKey struct {
	namespace string
	platform  v1alpha1.Platform
	id        string
}

// owner is one target of one post.
type owner struct {
	post   types.UID
	target int32
}

// ownership is who owns a platform id, and since when.
type ownership struct {
	owner
	at time.Time
}

// Bounds of what is remembered and read.
const (
	ownershipTTL = 24 * time.Hour
	pruneEvery   = 10 * time.Minute

	// successionTime covers the call (60 s at most) and the patience of its
	// record (60 s) of a process that was replaced.
	successionTime = 150 * time.Second
)

// NewOwners makes an Owners that reads from the API server.
func NewOwners(reader client.Reader, clk clock.Clock) *Owners {
	return &Owners{
		reader: reader, clock: clk, pruned: clk.Now(),
		byID: map[externalKey]ownership{}, unconfirmed: map[unconfirmedKey]ownership{}, loaded: map[string]time.Time{}, flights: map[string]*flight{},
	}
}

// Start is told that this process works on posts, and returns since when: not since
// the process was started, for it may have stood by while another one published.
func (o *Owners) Start() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.startedAt.IsZero() {
		o.startedAt = o.clock.Now()
	}
	return o.startedAt
}

// Record remembers the platform ids that a post owns.
func (o *Owners) Record(post *v1alpha1.Post) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(post)
	if now := o.clock.Now(); now.Sub(o.pruned) > pruneEvery {
		o.pruned = now
		for key, known := range o.byID {
			if now.Sub(known.at) > ownershipTTL {
				delete(o.byID, key)
				// What was read may be incomplete from here on.
				clear(o.loaded)
			}
		}
		for key, known := range o.unconfirmed {
			if now.Sub(known.at) > ownershipTTL {
				delete(o.unconfirmed, key)
				clear(o.loaded)
			}
		}
	}
}

func (o *Owners) add(post *v1alpha1.Post) {
	for i := range post.Status.Targets {
		target := &post.Status.Targets[i]
		if target.ExternalID == "" {
			continue
		}
		at := o.clock.Now()
		if target.PostedAt != nil {
			at = target.PostedAt.Time
		}
		self := ownership{owner{post.UID, target.Index}, at}
		o.addID(post, target, target.ExternalID, target.Unconfirmed, self)
		for c := range target.Cards {
			o.addID(post, target, target.Cards[c].ExternalID, target.Cards[c].Unconfirmed, self)
		}
	}
}

// addID takes one id of a target. The lock is held.
func (o *Owners) addID(post *v1alpha1.Post, target *v1alpha1.TargetStatus, id string, unconfirmed bool, self ownership) {
	switch {
	case unconfirmed:
		o.unconfirmed[unconfirmedKey{post.Namespace, target.Platform, id}] = self
	case target.Attempt != nil && target.Attempt.AccountID != "":
		// What no call to an account stands behind is nobody's.
		o.recordOwner(externalKey{target.Platform, target.Attempt.AccountID, id}, self)
	}
}

// recordOwner makes a post the own of a target, unless it is another one's already. The lock is
// held.
func (o *Owners) recordOwner(key externalKey, self ownership) {
	if known, ok := o.byID[key]; ok && known.owner != self.owner {
		return
	}
	o.byID[key] = self
}

// ownedByOther reports whether a platform id of an account belongs to another target.
func (o *Owners) ownedByOther(platform v1alpha1.Platform, account, externalID string, self owner) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, ok := o.byID[externalKey{platform, account, externalID}]
	return ok && known.owner != self
}

// unconfirmedByOther reports whether a person told a platform id for another target of the
// namespace, and the platform did not confirm it.
func (o *Owners) unconfirmedByOther(namespace string, platform v1alpha1.Platform, externalID string, self owner) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, ok := o.unconfirmed[unconfirmedKey{namespace, platform, externalID}]
	return ok && known.owner != self
}

// Reserve makes a platform id of an account a target's own before that is written
// anywhere, so that of two that find it at once only one takes it. It reports false if it
// belongs to another.
func (o *Owners) Reserve(platform v1alpha1.Platform, account, externalID string, post types.UID, target int32) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	self, key := owner{post, target}, externalKey{platform, account, externalID}
	if known, ok := o.byID[key]; ok {
		return known.owner == self
	}
	o.byID[key] = ownership{self, o.clock.Now()}
	return true
}

// assign makes a platform id the own of the target to which the platform named it,
// whichever target has it.
func (o *Owners) assign(platform v1alpha1.Platform, account, externalID string, self owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byID[externalKey{platform, account, externalID}] = ownership{self, o.clock.Now()}
}
