// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package isolate

// raced says that this program looks for races. That takes more memory than any limit
// allows, and calls that no filter does: such a program, which only tests have, decodes
// unconfined.
const raced = true
