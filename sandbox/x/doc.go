// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package x simulates the part of X's API v2 that a publisher of text posts meets: who am I, create a post, delete it,
// read one's timeline, and OAuth 2.0 with rotating refresh tokens.
//
// What X does not document, or documents in two ways, is decided here and said where it is decided.
package x
