// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/dispatch"
	"github.com/herald-social/herald/posting"
)

const (
	// lanesPerAccount limits concurrent preparations of text posts for one account: its calls are sequential, so more
	// preparations would only finish earlier than needed.
	lanesPerAccount = 4
	// maxTargets is the maximum number of targets of a post, from its schema.
	maxTargets = 100
)

func (t *Target) waiter() dispatch.Waiter {
	return dispatch.Waiter{ID: client.ObjectKeyFromObject(t.Post).String(), Team: t.Post.Namespace, Due: posting.Of(t.Post).Due(), Wake: t.Wake}
}

// acquireSlot acquires a slot for a preparation, and returns its release. Texts use the lanes of their account. Files
// use the upload slots, since they take more time and bandwidth. If no slot is free, it returns nil and wakes the post
// later.
func (p *Preparer) acquireSlot(t *Target, files bool) (leave func()) {
	w := t.waiter()
	if files {
		w.ID = uploadID(w.ID, t.Index)
		if len(p.uploads.TryAcquire(w, []string{w.ID})) == 0 {
			return nil
		}
		return func() { p.uploads.Done(w.ID) }
	}
	lane := string(t.Conn.UID)
	if !p.lanes.TryAcquire(lane, w) {
		return nil
	}
	return func() { p.lanes.Release(lane) }
}

// Reserve acquires an upload slot for a target that this process does not hold yet. If none is free, it reports false
// and wakes the post later. StartHeld or ReleaseReserved must follow.
func (p *Preparer) Reserve(t *Target) bool { return p.acquireSlot(t, true) != nil }

// ReleaseReserved releases the slot of a target.
func (p *Preparer) ReleaseReserved(t *Target) { p.uploads.Done(t.uploadID()) }

func uploadID(post string, target int) string { return fmt.Sprintf("%s#%d", post, target) }

// ReleaseUnused releases the slots that were offered to a post and not taken in a reconciliation, including those for
// targets that an edit has removed. post is nil if it no longer exists.
func (p *Preparer) ReleaseUnused(key string, post *v1alpha1.Post) {
	targets := maxTargets
	if post != nil {
		targets = max(len(post.Spec.Targets), len(post.Status.Targets))
	}
	for i := range targets {
		p.uploads.ReturnWake(uploadID(key, i))
	}
	p.lanes.ReturnWake(key)
}
