// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package isolate

const raceEnabled = false
