// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package youtube simulates the YouTube Data API: the channel that a token belongs to, Google's token endpoint,
// resumable video uploads, thumbnails, the state of videos, and the playlist of a channel's uploads.
//
// It follows the platform's documentation. googleapis.com/youtube/v3 is at /youtube/youtube/v3, googleapis.com/upload
// is at /youtube/upload, and oauth2.googleapis.com/token is at /youtube/token. A video is on the channel as soon as its
// last byte has arrived; its status reports YouTube's errors later, after the time in processing_ms. Until then a
// Short's thumbnail is not applied. Of a video's metadata, the title, description and privacy are simulated. Other
// kinds of uploads, changes to a video except deleting it, and rejecting a file that the channel already has, which
// YouTube does not promise, are not simulated.
//
// The format of chunks and of the responses to them also follows Google's own clients (google.golang.org/api and
// googleapis): see readSpan, serveUpload and readRelated.
package youtube
