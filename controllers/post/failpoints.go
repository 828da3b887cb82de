// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/controllers/post/internal/records"
)

// Failpoints of the delivery, where a test may kill the process; see Options.Failpoint.
const (
	PointAfterSecret  = prepare.PointAfterSecret
	PointAfterPart    = prepare.PointAfterPart
	PointAfterAhead   = prepare.PointAfterAhead
	PointAfterPrepare = prepare.PointAfterPrepare
	// PointAfterHold comes between the write that holds a preparation and its start.
	PointAfterHold    = "after-hold"
	PointBeforeClaim  = publish.PointBeforeClaim
	PointAfterClaim   = publish.PointAfterClaim
	PointAfterAnswer  = publish.PointAfterAnswer
	PointAfterRecord  = publish.PointAfterRecord
	PointAfterLookup  = "after-lookup"
	PointAfterReserve = "after-reserve"
	PointAfterArm     = publish.PointAfterArm
	PointBeforeOpen   = publish.PointBeforeOpen
	PointAfterOpen    = publish.PointAfterOpen

	PointBeforeKeep    = records.PointBeforeKeep
	PointAfterKeep     = records.PointAfterKeep
	PointBeforeRelease = records.PointBeforeRelease
)
