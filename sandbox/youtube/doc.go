// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package youtube simulates the YouTube Data API: the channel of a token, Google's token endpoint, resumable uploads
// of videos, thumbnails, the state of videos, and the playlist of a channel's uploads.
//
// It follows the platform's documentation. googleapis.com/youtube/v3 is at /youtube/youtube/v3, googleapis.com/upload
// is at /youtube/upload, and oauth2.googleapis.com/token is at /youtube/token. A video is on the channel as soon as
// its last byte has arrived; its status reports YouTube's errors later, after the time in processing_ms. Until then
// the thumbnail of a Short is not applied. Of a video's metadata, title, description and privacy are simulated. Other
// kinds of uploads, changes to a video except its deletion, and the rejection of a file that the channel already has,
// which YouTube does not promise, are not simulated.
//
// The format of chunks and their responses also follows Google's own clients (google.golang.org/api and googleapis):
// see readSpan, serveUpload and readRelated.
package youtube
