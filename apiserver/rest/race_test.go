// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package rest

// slack is how much more a program may allocate that looks for races, and keeps what it saw.
const slack = 2
