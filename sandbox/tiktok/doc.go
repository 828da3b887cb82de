// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tiktok simulates TikTok's API: the account behind a token and its creator's options, rotating refresh tokens,
// the list of posts ("List Videos", "Query Videos", with text of at most 150 characters: "Video Object", August 2026),
// and the Content Posting API with chunked uploads, files that TikTok fetches, photos, drafts in the inbox, and the
// status of a publish id.
//
// It follows the platform's documentation. Files are fetched after the call that names them; as on TikTok, problems
// with them show up in the status of the publish id. A post exists as soon as its last byte has arrived, but it has no
// public id until TikTok has finished processing it. Cancellation, the audit of clients, URL ownership, webhooks, and
// the app for finishing drafts are not simulated.
//
// A lenient sandbox ignores unknown fields, as TikTok does: in production, OpenPost's adapter sends the photo field
// post_mode with videos too.
package tiktok
