// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package rendition_test

// raced is true for processes with the race detector, which takes more memory than any limit allows. Such processes are
// not limited.
const raced = false
