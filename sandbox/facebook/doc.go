// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package facebook simulates the Graph API of Facebook Pages for posts of text and photos: publishing to a Page's
// feed, unpublished photos to attach, drafts that are published by their ids, reading a post or photo, and listing a
// Page's posts.
//
// It follows the platform's documentation. Videos, stories and all other options of a post are not simulated and are
// rejected. A lenient sandbox ignores the options that do not change when a post becomes visible.
package facebook
