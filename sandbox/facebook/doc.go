// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package facebook simulates the Graph API of Facebook Pages for posts of text and photos: publishing to a Page's feed,
// photos that wait to be attached, drafts that are published by their ids, reading a post or photo, and listing what a Page has
// published.
//
// It is written from the platform's documentation. Videos, stories and all other options of a post are not simulated:
// asking for one is refused. A lenient sandbox overlooks those that do not change when a post is seen.
package facebook
