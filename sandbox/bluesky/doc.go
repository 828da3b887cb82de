// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bluesky simulates one of Bluesky's account servers (PDS): app password sessions, blobs, posts with links,
// images, a video or a card, replies, and the reading of records.
//
// It follows the lexicons and the AT Protocol's specifications at atproto.com as of October 2026. Where they leave a
// response open, a comment names the file of @atproto/pds 0.5.35 that shows it, and test/bluesky compares both. The
// access token of an account in the control API is a handle and an app password, separated by a colon, as in Herald's
// Secrets.
//
// Sessions are kept in memory: a restart ends them. A record's hash (CID) is the hash of its JSON and not of its
// encoding in the repository. Collections other than posts, edited records, commits, labels, other accounts' reactions,
// federation and OAuth are not simulated, and two accounts cannot have posts under the same key.
package bluesky
