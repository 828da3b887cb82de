// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults makes a simulated platform misbehave on request, and counts what arrives.
//
// A Gate stands in front of each operation of each platform. It counts the request, reads it whole, asks the Board
// whether a fault matches, and lets the operation act, or not, or act and then hide the answer.
//
// Faults and counters live in memory: a restart forgets them.
package faults
