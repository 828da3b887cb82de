// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race && (amd64 || arm64)

package isolate_test

// raceEnabled is true if the processes in these tests cannot be confined.
const raceEnabled = false
