// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package youtube simulates the YouTube Data API: the channel that a token belongs to, Google's token endpoint, resumable
// uploads of videos, thumbnails, the state of videos, and the playlist of a channel's uploads.
//
// It is written from the platform's documentation. What lies at googleapis.com/youtube/v3 is at /youtube/youtube/v3 here, what
// lies at googleapis.com/upload is at /youtube/upload, and what lies at oauth2.googleapis.com/token is at /youtube/token. A
// video is on the channel as soon as its last byte is there; what YouTube finds wrong with it shows in its status later, when
// the time that processing_ms names has passed. Until then the thumbnail of a Short is not applied. Of what
// can be said about a video, title, description and privacy are simulated. Not simulated are uploads of other kinds, changes
// to a video but its deletion, and the rejection of a file that the channel has already, which YouTube does not promise.
//
// How chunks come, and how they are answered, is also taken from Google's own clients (google.golang.org/api and googleapis):
// see readSpan, put and readRelated.
package youtube
