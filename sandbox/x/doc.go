// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package x simulates the part of X's API v2 that a publisher meets: who am I, upload media, create a post, read and delete
// it, read one's timeline, and OAuth 2.0 with rotating refresh tokens.
//
// Sources are docs.x.com and X's OpenAPI 2.167 of August 2026, whose names of fields (post, referenced_posts, note_post) are
// known beside the older ones (tweet, …), which the service knows. What the clients twitter-api-v2, gotwi, go-twitter and
// X's own SDK send in production is taken.
//
// An upload is a container of package state whose detail this package alone understands (type media). It grows by chunks, is
// finalized, worked on when it is a video or GIF, and expires; its bytes lie in package blobs.
//
// What X does not document, or documents in two ways, is decided here and said where it is decided.
package x
