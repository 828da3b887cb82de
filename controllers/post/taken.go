// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// taken knows which platform ids belong to which Post, so that a look-up does
// not take another Post's publication for the one it searches. What this
// process recorded it remembers; what earlier ones recorded it reads from the
// API server, once per namespace, when a look-up needs it.
type taken struct {
	live  client.Reader
	clock clock.Clock

	mu     sync.Mutex
	born   time.Time
	owners map[externalKey]claimed
	loaded map[string]time.Time
	pruned time.Time
}

type externalKey struct {
	platform v1alpha1.Platform
	id       string
}

// owner is one target of one post.
type owner struct {
	post   types.UID
	target int32
}

// claimed is who owns a platform id, and since when.
type claimed struct {
	owner
	at time.Time
}

// Bounds of what is remembered and read.
const (
	takenFor   = 24 * time.Hour
	takenPrune = 10 * time.Minute
	takenPage  = 500

	// successionTime covers the call (60 s at most) and the patience of its
	// record (60 s) of a process that was replaced.
	successionTime = 150 * time.Second
)

func newTaken(live client.Reader, clk clock.Clock) *taken {
	return &taken{
		live: live, clock: clk, pruned: clk.Now(),
		owners: map[externalKey]claimed{}, loaded: map[string]time.Time{},
	}
}

// began is when this process began to work on posts: not when it was started,
// for it may have stood by while another one published.
func (t *taken) began() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.born.IsZero() {
		t.born = t.clock.Now()
	}
	return t.born
}

// note remembers the platform ids that a post owns.
func (t *taken) note(post *v1alpha1.Post) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(post)
	if now := t.clock.Now(); now.Sub(t.pruned) > takenPrune {
		t.pruned = now
		for key, o := range t.owners {
			if now.Sub(o.at) > takenFor {
				delete(t.owners, key)
				// What was read may be incomplete from here on.
				clear(t.loaded)
			}
		}
	}
}

func (t *taken) add(post *v1alpha1.Post) {
	for i := range post.Status.Targets {
		target := &post.Status.Targets[i]
		if target.ExternalID == "" {
			continue
		}
		at := t.clock.Now()
		if target.PostedAt != nil {
			at = target.PostedAt.Time
		}
		self := claimed{owner{post.UID, target.Index}, at}
		t.owners[externalKey{target.Platform, target.ExternalID}] = self
		for c := range target.Cards {
			t.owners[externalKey{target.Platform, target.Cards[c].ExternalID}] = self
		}
	}
}

// byOther reports whether the platform id belongs to another target.
func (t *taken) byOther(platform v1alpha1.Platform, externalID string, self owner) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, ok := t.owners[externalKey{platform, externalID}]
	return ok && o.owner != self
}

// reserve makes a platform id a target's own before that is written anywhere,
// so that of two that find it at once only one takes it. It reports false if
// it belongs to another.
func (t *taken) reserve(platform v1alpha1.Platform, externalID string, self owner) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := externalKey{platform, externalID}
	if o, ok := t.owners[key]; ok {
		return o.owner == self
	}
	t.owners[key] = claimed{self, t.clock.Now()}
	return true
}

// assign makes a platform id the own of the target that the platform named it to,
// whoever else has it.
func (t *taken) assign(platform v1alpha1.Platform, externalID string, self owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owners[externalKey{platform, externalID}] = claimed{self, t.clock.Now()}
}

// load makes sure that publications recorded since a time, also by earlier
// processes, are known.
func (t *taken) load(ctx context.Context, namespace string, since time.Time) error {
	oldest := t.began()
	if horizon := t.clock.Now().Add(-takenFor); horizon.After(oldest) {
		oldest = horizon
	}
	t.mu.Lock()
	from, ok := t.loaded[namespace]
	t.mu.Unlock()
	// For a while the process before this one may still write results.
	settled := t.clock.Since(t.began()) > successionTime
	if since.After(oldest) || (ok && settled && !since.Before(from)) {
		return nil
	}
	token := ""
	for {
		var page v1alpha1.PostList
		if err := t.live.List(ctx, &page, client.InNamespace(namespace), client.Limit(takenPage), client.Continue(token)); err != nil {
			return fmt.Errorf("cannot list the posts of namespace %s: %w", namespace, err)
		}
		t.mu.Lock()
		for i := range page.Items {
			t.addSince(&page.Items[i], since)
		}
		t.mu.Unlock()
		if token = page.Continue; token == "" {
			break
		}
	}
	t.mu.Lock()
	t.loaded[namespace] = since
	t.mu.Unlock()
	return nil
}

func (t *taken) addSince(post *v1alpha1.Post, since time.Time) {
	for i := range post.Status.Targets {
		if at := post.Status.Targets[i].PostedAt; at != nil && !at.Before(since) {
			t.add(post)
			return
		}
	}
}
