// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package x simulates the part of X's API v2 used by a publisher: identity, media uploads, creating, reading and deleting posts, the user's
// timeline, and OAuth 2.0 with rotating refresh tokens.
//
// Sources are docs.x.com and X's OpenAPI 2.167 of August 2026. The simulator knows the OpenAPI's field names (post, referenced_posts,
// note_post) and the older ones (tweet, …), which the service accepts. It accepts the requests sent in production by twitter-api-v2, gotwi,
// go-twitter and X's own SDK.
//
// An upload is a container of package state with a private detail (type media). It grows by chunks, is finalized, is processed if it is a
// video or GIF, and expires; its bytes are in package blobs.
//
// Where X's documentation is missing or contradictory, the comment at the code names the decision.
package x
