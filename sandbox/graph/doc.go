// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package graph holds what Meta's Graph APIs have in common, for the simulators of Threads, Instagram and Facebook: how
// they take parameters and tokens, name versions, pick fields, list by pages, word errors and announce limits.
//
// What a request may ask for is strict: the real APIs overlook a misspelt parameter, this one refuses it, so that it
// shows.
package graph
