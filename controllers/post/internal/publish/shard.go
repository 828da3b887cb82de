// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"errors"

	"github.com/herald-social/herald/platforms"
)

// Shard is a shard that this process holds under one version of its Lease; see docs/adr/0035. All methods accept nil,
// which means that there is only one shard.
type Shard struct {
	// Name is the shard's name, as in the label and in a Team's status.shard.
	Name string
	// Version is the random id that the process stored in the shard's Lease. Claims name it.
	Version string
	// Valid reports whether the process still holds the shard. It is called before each claim, and again before each call:
	// the next holder may have listed the posts before a late claim was stored.
	Valid func() bool
}

// ErrReleased is returned when a post was not claimed because this process no longer holds its shard.
var ErrReleased = errors.New("another manager delivers the posts of this shard now")

// released is the error of a claim that was stored after the process gave up the shard.
var released = platforms.Errorf(platforms.ClassTransient, "another manager took over the team's posts, so nothing was sent")

// IsHeld reports whether the process still holds the shard.
func (s *Shard) IsHeld() bool { return s == nil || s.Valid() }

func (s *Shard) version() string {
	if s == nil {
		return ""
	}
	return s.Version
}
