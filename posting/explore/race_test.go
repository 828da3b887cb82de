// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package explore

// fewer is how many faults are left out under the race detector, which has nothing
// to find in one goroutine and makes it slow.
const fewer = 1
