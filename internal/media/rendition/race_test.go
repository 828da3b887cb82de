// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package rendition_test

// raced is set where processes look for races, which takes more memory than any limit, and are not bounded.
const raced = true
