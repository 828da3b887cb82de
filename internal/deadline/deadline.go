// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deadline says how long one pass of each controller may take. A pass that hangs
// holds one of its controller's workers: without an end, a server that accepts a request and
// then says nothing stops a controller, worker by worker, until the next restart. A pass that
// is cut off is an error, and tried again after a pause.
//
// Each is above the longest honest pass; what a pass waits for has a limit of its own, which
// ends it long before and says more. What outlives a pass is not cut off with it:
//
//   - A call that publishes, and the record of its result: they are detached from the pass, and
//     bounded by the platform's CallTimeout and by the configuration's delivery.recordFor.
//   - A renewal of a token and the storing of it (controllers/connection/tokens.go).
//   - Uploads and conversions before a post's call: they run beside the passes, and are bounded
//     by what there is to send (controllers/post/internal/prepare).
//   - The write of a status at the end of a pass.
package deadline

import "time"

const (
	// Team is for some reads and writes of the Kubernetes API, and the count of the team's objects,
	// which are listed page by page.
	Team = 5 * time.Minute

	// APIKey is for a handful of reads and writes of the Kubernetes API.
	APIKey = 2 * time.Minute

	// Connection is for a renewal (15 s) that is stored with patience (60 s), two questions to the
	// platform (4 s each), and the writes of a status.
	Connection = 5 * time.Minute

	// Verification is for one look at an uploaded file: 32 MiB of it at most, from a store that
	// sends 128 KiB in a second, and two minutes for the way there.
	Verification = 2*time.Minute + 32*8*time.Second

	// Media is for a fetch (15 min), which is verified before and after, and writes.
	Media = 15*time.Minute + 2*Verification + 2*time.Minute

	// Post is for the list of a team's other posts before a platform is asked what became of
	// a call, which takes a minute at most, and for the cards of a tree: they go out in one
	// pass as long as it lasts, and the next pass goes on with them.
	Post = 15 * time.Minute

	// Sweep is for one sweep: of the store of media files, a million of them, listed by the
	// thousand, and a thousand of them deleted; or of posts that leave, twenty in a second. The next one goes on.
	Sweep = 50 * time.Minute
)
