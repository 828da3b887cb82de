// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/controllers/post/internal/publish"
)

// Points of the protocol at which a test may kill the process; see
// Options.Failpoint.
const (
	PointAfterSecret  = prepare.PointAfterSecret
	PointAfterPart    = prepare.PointAfterPart
	PointAfterAhead   = prepare.PointAfterAhead
	PointAfterPrepare = prepare.PointAfterPrepare
	PointBeforeClaim  = publish.PointBeforeClaim
	PointAfterClaim   = publish.PointAfterClaim
	PointAfterAnswer  = publish.PointAfterAnswer
	PointAfterRecord  = publish.PointAfterRecord
	PointAfterLookup  = "after-lookup"
	// Around the write of a post's record, and before its finalizer comes off.
	PointBeforeKeep    = "before-keep"
	PointAfterKeep     = "after-keep"
	PointBeforeRelease = "before-release"
)
