// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package explore

// fewer is how many faults are left out.
const fewer = 0
