// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !crashpoints

package process

// CrashPoint returns the function that the manager calls at failpoints: nil in every released build.
func CrashPoint() func(string) { return nil }
