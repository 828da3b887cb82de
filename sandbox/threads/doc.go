// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package threads simulates the Threads API: containers of text, images, videos and carousels, their publication, the
// account's posts and replies, and long-lived tokens.
//
// It is written from the platform's documentation. Media are fetched from where the client says they are. What can be told
// of them without decoding them is judged: type, size, picture and length; codecs, sound and rates are taken as they are.
// Not simulated are the options of a post beside its text, media and what it answers: asking for one is refused. A lenient
// sandbox overlooks those that do not change when a post is seen.
package threads
