// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tiktok simulates TikTok's API: who a token belongs to and what its creator may post, rotating refresh tokens, its
// list of posts ("List Videos", "Query Videos", whose texts have 150 characters at most: "Video Object", August 2026), and
// the Content Posting API with uploads in chunks, files that TikTok fetches, photos, drafts in the inbox, and the status of
// a publish id.
//
// It is written from the platform's documentation. Files are fetched after the call that names them; what is wrong with
// them is told by the status of the publish id, as TikTok tells it. A post is there as soon as its last byte is, but has no
// public id until TikTok's work is done. Not simulated are cancellation, the audit of clients, the ownership of addresses,
// webhooks, and the app in which drafts are finished.
//
// Fields that TikTok does not know are overlooked when the sandbox is lenient, as TikTok does: OpenPost's adapter sends the
// post_mode of photos with videos as well, in production.
package tiktok
