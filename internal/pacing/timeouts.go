// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import "time"

// The timeout of one reconciliation, by controller. A reconciliation that hangs occupies one of its controller's
// workers: without a timeout, a server that accepts a request but never responds would stop a controller, worker by
// worker, until the next restart. A reconciliation that times out returns an error, and is retried with backoff.
//
// Each timeout exceeds the longest healthy reconciliation. Each wait within it is limited separately, and fails much
// earlier with a more precise error. Work that outlives a reconciliation is not cancelled with it:
//
//   - A call that publishes, and recording its result: both are detached from the reconciliation, and limited by the
//     platform's CallTimeout and the configuration's delivery.recordFor.
//   - Renewing a token and storing it (controllers/connection/tokens.go).
//   - Uploads and conversions before a post's call: they run concurrently with reconciliations, and are limited by the
//     size of the content (controllers/post/internal/prepare).
//   - Writing a status at the end of a reconciliation.
const (
	// TeamTimeout covers a few reads and writes of the Kubernetes API, and counting the team's objects page by page.
	TeamTimeout = 5 * time.Minute

	// APIKeyTimeout covers a handful of reads and writes of the Kubernetes API.
	APIKeyTimeout = 2 * time.Minute

	// ScheduleTimeout covers creating a schedule's posts, at most 13, and status writes.
	ScheduleTimeout = 2 * time.Minute

	// NotifierTimeout covers passing a notifier to its worker, which waits for others to start.
	NotifierTimeout = time.Minute

	// ConnectionTimeout covers a renewal (15 s), storing its token (60 s), two queries (4 s each), and status writes.
	ConnectionTimeout = 5 * time.Minute

	// VerificationTimeout covers one check of an uploaded file: at most 32 MiB of it, from a store that sends 128 KiB per
	// second, and two minutes for latency.
	VerificationTimeout = 2*time.Minute + 32*8*time.Second

	// MediaTimeout covers a fetch (15 min), a verification before and after it, and writes.
	MediaTimeout = 15*time.Minute + 2*VerificationTimeout + 2*time.Minute

	// PostTimeout covers listing a team's other posts before a lookup, which takes at most a minute, and a tree's cards:
	// one reconciliation sends what fits into its timeout, and the next one continues.
	PostTimeout = 15 * time.Minute

	// SweepTimeout covers one sweep over the store of media files (a million files, listed in pages of a thousand, and a
	// thousand deletions) or over posts that leave the cluster (twenty per second). The next sweep continues.
	SweepTimeout = 50 * time.Minute
)
