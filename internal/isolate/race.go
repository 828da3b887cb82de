// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package isolate

// raceEnabled reports whether the program was built with the race detector, which needs more memory than any limit
// allows, and system calls that the filters reject. Race builds, used only in tests, decode unconfined.
const raceEnabled = true
