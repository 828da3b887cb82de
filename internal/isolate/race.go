// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package isolate

// raceEnabled marks a program built with the race detector. The detector needs more memory than any limit allows, and
// calls that no filter permits, so such a program, which only tests use, decodes unconfined.
const raceEnabled = true
