// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// version is set by the linker to the release or, between releases, to the commit.
var version = "unknown"
