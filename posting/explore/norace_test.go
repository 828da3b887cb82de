// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package explore

// fewer is the number of faults that are left out.
const fewer = 0
