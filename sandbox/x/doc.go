// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package x simulates the part of X's API v2 that a publisher uses: identity, media uploads, creating, reading and
// deleting posts, the user's timeline, and OAuth 2.0 with rotating refresh tokens.
//
// The sources are docs.x.com and X's OpenAPI 2.167 of August 2026. The simulator supports the OpenAPI field names
// (post, referenced_posts, note_post) and the older ones (tweet, …), which the service still accepts. It accepts the
// requests that twitter-api-v2, gotwi, go-twitter and X's own SDK send in production.
//
// An upload is a container of package state whose private detail is of type media. It grows chunk by chunk, is
// finalized, is processed if it is a video or GIF, and expires. Its bytes are in package blobs.
//
// Where X's documentation is missing or contradicts itself, a comment in the code describes our choice.
package x
