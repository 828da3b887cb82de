// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package rest

// slack is the factor for allocations with the race detector, which adds its own.
const slack = 1
