// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package rest

// slack is 1 without the race detector; see race_test.go.
const slack = 1
