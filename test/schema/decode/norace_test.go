// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package decode_test

// overhead is the factor for the permitted allocations without the race detector.
const overhead = 1
