// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package blobs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/herald-social/herald/sandbox/blobs"
)

func TestTruncate(t *testing.T) {
	tests := []struct {
		name, reason string
		to, want     int64
	}{
		{"back", "what was never acknowledged goes", 3, 3},
		{"as it is", "nothing is too much", 5, 5},
		{"beyond", "what is not there cannot be made up", 9, 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := blobs.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Begin("a"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Append("a", 0, strings.NewReader("12345"), 100); err != nil {
				t.Fatal(err)
			}
			if err := s.Truncate("a", tt.to); err != nil {
				t.Fatal(err)
			}
			if size, _ := s.Size("a"); size != tt.want {
				t.Errorf("%s: %d bytes, want %d", tt.reason, size, tt.want)
			}
		})
	}
}

func TestTruncateNothing(t *testing.T) {
	s, err := blobs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Truncate("a", 0); !errors.Is(err, blobs.ErrUnknown) {
		t.Errorf("%v, want that there is no such upload", err)
	}
}
