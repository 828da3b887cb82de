// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text recognizes a text that a platform gives back: it may have
// trimmed it, changed its blanks, and composed its letters.
package text

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Folded is a text in the form in which it is compared: in NFC, with every run of
// blanks as one space.
func Fold(text string) string { return strings.Join(strings.Fields(norm.NFC.String(text)), " ") }
