// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package facebook simulates the Graph API of Facebook Pages for posts of text and links: publishing to a Page's feed,
// reading a post, and listing what a Page has published.
//
// It is written from the platform's documentation. Photos and videos are not simulated, nor are scheduled and targeted
// posts: asking for one is refused with a message that says so.
package facebook
