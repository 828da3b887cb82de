// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/location"
	"github.com/herald-social/herald/platforms"
)

// withoutPlace names what becomes of a file that is fetched, by the rules of what a place is.
const withoutPlace = "without location " + location.Version

// privacy says of the files of one job whether they are sent with the place where they were
// taken. It asks when the first of them is read, and only then: the parts of a file that is sent
// in several belong together.
type privacy struct {
	// finder searches files; nil for one that is not there.
	finder *location.Finder
	// media returns what the team has decided; nil is nothing.
	media func(ctx context.Context) (v1alpha1.TeamMedia, error)

	mu           sync.Mutex
	loaded       bool
	keepLocation bool
}

// privacyIn returns the rule for the files of a job in a namespace.
func (p *Preparer) privacyIn(namespace string) *privacy {
	rule := &privacy{finder: p.finder}
	if p.o.TeamMedia != nil {
		rule.media = func(ctx context.Context) (v1alpha1.TeamMedia, error) { return p.o.TeamMedia(ctx, namespace) }
	}
	return rule
}

// keepsLocation reports whether the team has files sent with the place.
func (r *privacy) keepsLocation(ctx context.Context) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loaded || r.media == nil {
		return r.keepLocation, nil
	}
	decided, err := r.media(ctx)
	if err != nil {
		return false, fmt.Errorf("cannot tell whether the team has places sent with its files: %w", err)
	}
	r.loaded, r.keepLocation = true, decided.KeepLocation
	return r.keepLocation, nil
}

// patches returns what takes the place out of a file; nothing if it stays, or there is none.
func (r *privacy) patches(ctx context.Context, s stored) (location.Patches, error) {
	if keep, err := r.keepsLocation(ctx); err != nil || keep || r.finder == nil {
		return location.Patches{}, err
	}
	found, err := r.finder.Find(ctx, location.File{Key: s.key, ETag: s.etag, MIMEType: string(s.mimeType), Size: s.size})
	if problem, ok := errors.AsType[*location.UnreadableError](err); ok {
		return location.Patches{}, &platforms.FileAtFault{
			Problem: problem.Message,
			Remedy:  "export it again, or let your team send places with its files: spec.media.keepLocation of its Team",
		}
	}
	return found, err
}
