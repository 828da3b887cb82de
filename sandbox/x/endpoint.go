// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import "github.com/herald-social/herald/sandbox/faults"

// Operations that have no name in faults; only `*` matches them.
const (
	opRevoke faults.Operation = "revoke"
	opRead   faults.Operation = "read" // one post
	opDelete faults.Operation = "delete"
)

// endpoint is one path and method of the API.
type endpoint struct {
	op faults.Operation
	// limit is the number of requests that X allows per user and window.
	limit int
}

// limitPosts is the limit for creating posts.
const limitPosts = 100

// The endpoints. X does not document limits for OAuth; its endpoints use the limit for creating posts.
var (
	callUnknown = endpoint{"", limitPosts}

	callMe       = endpoint{faults.Identity, 75}
	callCreate   = endpoint{faults.Publish, limitPosts}
	callTimeline = endpoint{faults.List, 900}
	callRead     = endpoint{opRead, 900}
	callDelete   = endpoint{opDelete, 50}

	callUpload = endpoint{faults.Upload, 500}
	callChunks = endpoint{faults.Upload, 1875} // initialize, append and finalize
	callStatus = endpoint{faults.Status, 1000}

	callMetadata = endpoint{faults.Metadata, 500}

	callToken  = endpoint{faults.RefreshToken, limitPosts}
	callRevoke = endpoint{opRevoke, limitPosts}
)
