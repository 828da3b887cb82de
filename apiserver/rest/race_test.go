// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package rest

// slack multiplies the allocation limit when the tests run under the race detector, which allocates memory itself.
const slack = 2
