// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package threads simulates the Threads API for posts of text: containers, their publication, the account's posts and
// replies, and long-lived tokens.
//
// It is written from the platform's documentation. Media are not simulated: a container that names some is refused as
// the platform refuses media that it cannot fetch.
package threads
