// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mastodon simulates the REST API of one Mastodon server: accounts, media with asynchronous processing, posts of
// text, images or a video, replies, the source of posts, an account's posts, the server's limits, apps and OAuth.
//
// It follows docs.joinmastodon.org as of July 2026. Where the documentation leaves a response open, a comment names the
// file of Mastodon's source that shows it. A file that is not part of a post is kept for a day. An Idempotency-Key is
// kept for an hour, in memory.
//
// Polls, quotes, scheduled posts, boosts, other accounts' reactions and federation are not simulated.
package mastodon
