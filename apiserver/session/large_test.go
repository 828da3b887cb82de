// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// TestSealAThousandPages verifies that a person with the maximum number of Pages can choose one: the sealed state
// contains their tokens.
func TestSealAThousandPages(t *testing.T) {
	t.Parallel()
	s := NewSealer(clock.RealClock{}, NewKey(time.Now().Add(-time.Hour)))
	pages := make([]string, 1000)
	for i := range pages {
		pages[i] = strings.Repeat("t", 500)
	}
	var got []string
	if err := s.Open("choice", s.Seal("choice", pages, time.Minute), &got); err != nil || len(got) != len(pages) {
		t.Errorf("%d pages, %v", len(got), err)
	}
}
