// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package decode_test

// overhead is how many times as much the rules may allocate without the race detector.
const overhead = 1
