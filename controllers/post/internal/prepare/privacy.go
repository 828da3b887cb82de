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

// withoutPlace identifies the rewriting that removes a file's location, with the version of its rules.
const withoutPlace = "without location " + location.Version

// privacy determines whether the files of one job are sent with their location. It reads the setting only once, with
// the first file, so that all parts of a file are sent under the same setting.
type privacy struct {
	// finder finds locations in files. It is nil for a file that does not exist.
	finder *location.Finder
	// media returns the team's settings. If nil, the defaults apply.
	media func(ctx context.Context) (v1alpha1.TeamMedia, error)

	mu           sync.Mutex
	loaded       bool
	keepLocation bool
}

func (p *Preparer) privacyIn(namespace string) *privacy {
	rule := &privacy{finder: p.finder}
	if p.o.TeamMedia != nil {
		rule.media = func(ctx context.Context) (v1alpha1.TeamMedia, error) { return p.o.TeamMedia(ctx, namespace) }
	}
	return rule
}

func (r *privacy) keepsLocation(ctx context.Context) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loaded || r.media == nil {
		return r.keepLocation, nil
	}
	decided, err := r.media(ctx)
	if err != nil {
		return false, fmt.Errorf("cannot read whether the team's files keep their location: %w", err)
	}
	r.loaded, r.keepLocation = true, decided.KeepLocation
	return r.keepLocation, nil
}

// patches returns the changes that remove the location from a file. There are none if the location is kept or the file
// has no location.
func (r *privacy) patches(ctx context.Context, s stored) (location.Patches, error) {
	if keep, err := r.keepsLocation(ctx); err != nil || keep || r.finder == nil {
		return location.Patches{}, err
	}
	found, err := r.finder.Find(ctx, location.File{Key: s.key, ETag: s.etag, MIMEType: string(s.mimeType), Size: s.size})
	if problem, ok := errors.AsType[*location.UnreadableError](err); ok {
		return location.Patches{}, &platforms.FileAtFault{
			Problem: problem.Message,
			Remedy:  "export it again, or allow locations in your team's files: spec.media.keepLocation of its Team",
		}
	}
	return found, err
}
