// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package facebook simulates the Graph API of Facebook Pages for text and photo posts: publishing to a Page's feed, unpublished photos to
// attach, drafts published by ID, reading a post or photo, and listing a Page's posts.
//
// It follows the platform's documentation. Videos, stories and all other post options are not simulated and are rejected. A lenient sandbox
// ignores the options that do not affect when a post becomes visible.
package facebook
