// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package explore

// fewer is the number of omitted faults under the race detector, which is slow and has little to detect in a single goroutine.
const fewer = 1
