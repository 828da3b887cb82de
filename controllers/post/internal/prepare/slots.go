// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/dispatch"
	"github.com/herald-social/herald/posting"
)

const (
	// lanesPerAccount is how many texts are prepared for one account at once. The
	// calls go out one after another, so that more would only run ahead of them.
	lanesPerAccount = 4
	// maxTargets is how many targets a post has at most, by its schema.
	maxTargets = 100
)

func (t *Target) waiter() dispatch.Waiter {
	return dispatch.Waiter{ID: client.ObjectKeyFromObject(t.Post).String(), Team: t.Post.Namespace, Due: posting.Due(t.Post), Wake: t.Wake}
}

// acquireSlot takes a place for a preparation, and returns what gives it back: among the few
// of its account for a text, among the uploads for files, which take longer and
// more of the network. It returns nil if none is free; the post is woken when one is.
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

// uploadID names the waiter of a target of a post.
func uploadID(post string, target int) string { return fmt.Sprintf("%s#%d", post, target) }

// ReleaseUnused lets others have the places that were kept for a post and that it did not
// take in a pass. Targets that an edit took out of the post are among them; post is
// nil for one that is gone.
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
