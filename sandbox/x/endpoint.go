// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import "github.com/herald-social/herald/sandbox/faults"

// Operations without a name in faults; only `*` matches them.
const (
	opRevoke faults.Operation = "revoke"
	opRead   faults.Operation = "read" // one post
	opDelete faults.Operation = "delete"

	opMetadata faults.Operation = "metadata"
)

// endpoint is one path of the API with one method.
type endpoint struct {
	op faults.Operation
	// limit is the number of requests per user and window that X documents.
	limit int
}

// limitPosts is the limit for creating posts.
const limitPosts = 100

// The endpoints. X documents no limits for OAuth; those endpoints use the limit of creating a post.
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

	callMetadata = endpoint{opMetadata, 500}

	callToken  = endpoint{faults.RefreshToken, limitPosts}
	callRevoke = endpoint{opRevoke, limitPosts}
)
