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

// Owners maps platform ids to the posts that own them, so that a lookup does not attribute another post's publication
// to its post. It holds the ids that this process has recorded. When a lookup needs ids that earlier processes
// recorded, it reads them from the API server (see load).
type Owners struct {
	reader client.Reader
	clock  clock.Clock

	mu          sync.Mutex
	startedAt   time.Time
	byID        map[externalKey]ownership
	unconfirmed map[unconfirmedKey]ownership
	loaded      map[string]loaded
	pruned      time.Time
	flights     map[string]*flight
}

// externalKey identifies an account's post. The account is part of the key: otherwise one team could take over the
// publications of another team's account.
type externalKey struct {
	platform    v1alpha1.Platform
	account, id string
}

// unconfirmedKey is an id that a user entered for a post and that the platform did not confirm. It affects only its
// namespace, where the id may be correct, so a lookup for another post that finds it is uncertain.
type unconfirmedKey struct {
	namespace string
	platform  v1alpha1.Platform
	id        string
}

type owner struct {
	post   types.UID
	target int32
}

type ownership struct {
	owner
	at time.Time
}

// Limits on the entries in memory and on reads.
const (
	ownershipTTL = 24 * time.Hour
	pruneEvery   = 10 * time.Minute

	// successionTime covers the call (at most 60 s) and the retries to record it (60 s) by a process that was replaced.
	successionTime = 150 * time.Second
)

// NewOwners returns an Owners that reads from the API server.
func NewOwners(reader client.Reader, clk clock.Clock) *Owners {
	return &Owners{
		reader: reader, clock: clk, pruned: clk.Now(),
		byID: map[externalKey]ownership{}, unconfirmed: map[unconfirmedKey]ownership{}, loaded: map[string]loaded{}, flights: map[string]*flight{},
	}
}

// Start returns the time of its first call, which is when this process started to reconcile posts. The start of the
// process itself would be too early, since it may have been on standby while another process published.
func (o *Owners) Start() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.startedAt.IsZero() {
		o.startedAt = o.clock.Now()
	}
	return o.startedAt
}

// Record adds the platform ids that a post owns.
func (o *Owners) Record(post *v1alpha1.Post) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(post)
	if now := o.clock.Now(); now.Sub(o.pruned) > pruneEvery {
		o.pruned = now
		for key, known := range o.byID {
			if now.Sub(known.at) > ownershipTTL {
				delete(o.byID, key)
				// From here on, the ids that were read may be incomplete.
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

// addID adds one of a target's ids. The caller must hold the lock.
func (o *Owners) addID(post *v1alpha1.Post, target *v1alpha1.TargetStatus, id string, unconfirmed bool, self ownership) {
	switch {
	case unconfirmed:
		o.unconfirmed[unconfirmedKey{post.Namespace, target.Platform, id}] = self
	case target.Attempt != nil && target.Attempt.AccountID != "":
		// An id without a call to an account has no owner.
		o.recordOwner(externalKey{target.Platform, target.Attempt.AccountID, id}, self)
	}
}

// recordOwner assigns a post to a target, unless another target owns it. The caller must hold the lock.
func (o *Owners) recordOwner(key externalKey, self ownership) {
	if known, ok := o.byID[key]; ok && known.owner != self.owner {
		return
	}
	o.byID[key] = self
}

func (o *Owners) ownedByOther(platform v1alpha1.Platform, account, externalID string, self owner) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, ok := o.byID[externalKey{platform, account, externalID}]
	return ok && known.owner != self
}

// unconfirmedByOther reports whether a user entered an unconfirmed id for another target in the namespace.
func (o *Owners) unconfirmedByOther(namespace string, platform v1alpha1.Platform, externalID string, self owner) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, ok := o.unconfirmed[unconfirmedKey{namespace, platform, externalID}]
	return ok && known.owner != self
}

// Reserve assigns a platform id on an account to a target before any status has it, so that only one of two targets
// that find the id at once gets it. It returns false if another target owns the id.
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

// assign assigns a platform id to the target that the platform has identified, even if another target owns it.
func (o *Owners) assign(platform v1alpha1.Platform, account, externalID string, self owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byID[externalKey{platform, account, externalID}] = ownership{self, o.clock.Now()}
}
