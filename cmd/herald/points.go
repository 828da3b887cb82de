// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !crashpoints

package main

// crashPoint returns the function that the manager calls at failpoints: nil in every released build.
func crashPoint() func(string) { return nil }
