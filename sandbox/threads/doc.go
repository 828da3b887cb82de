// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package threads simulates the Threads API: containers of text, images, videos and carousels, publishing them, the
// account's posts and replies, and long-lived tokens.
//
// It follows the platform's documentation. Media are fetched from the client's URLs. The simulator checks their type,
// size, dimensions and duration and, if ffprobe is installed, codecs and frame rate. It does not check bit rates.
//
// Options of a post beyond its text, media and reply are not simulated and are rejected. A lenient sandbox ignores
// those that do not change when a post becomes visible.
package threads
