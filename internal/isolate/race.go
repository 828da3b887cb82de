// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package isolate

// raceEnabled marks a program built with the race detector. The detector needs more memory than any limit allows, and
// system calls that the filters reject. Such a program, which only tests use, therefore decodes without confinement.
const raceEnabled = true
