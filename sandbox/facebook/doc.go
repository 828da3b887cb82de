// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package facebook simulates the Graph API of Facebook Pages for posts of text, links and photos: publishing to a Page's
// feed, photos that wait to be attached, reading a post or photo, and listing what a Page has published.
//
// It is written from the platform's documentation. Videos and stories are not simulated, nor are scheduled and targeted
// posts: asking for one is refused, of a post with a message that says so.
package facebook
