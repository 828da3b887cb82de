// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package youtube simulates the accounts of the YouTube Data API: the channel that a token belongs to, and Google's token
// endpoint. Publishing needs videos and is not simulated.
//
// It is written from the platform's documentation. What lies at googleapis.com/youtube/v3 is at /youtube/youtube/v3 here,
// and what lies at oauth2.googleapis.com/token is at /youtube/token.
package youtube
