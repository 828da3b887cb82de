// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package explore

// fewer is the number of omitted faults under the race detector, which has nothing to find in one goroutine and makes
// the test slow.
const fewer = 1
