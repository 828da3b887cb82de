// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package explore

// fewer is the number of faults that are left out under the race detector, which is slow and has little to find in a
// single goroutine.
const fewer = 1
