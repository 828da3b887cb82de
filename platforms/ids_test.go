// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestIDsOfFiles parses checkpoints of a job with two files.
func TestIDsOfFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, checkpoint string
		files, parts       []string
	}{
		"all":        {"every file has its id", JoinFileIDs([]string{"1", "2"}), []string{"1", "2"}, nil},
		"some":       {"the remaining items are created", JoinPartIDs([]string{"1"}), nil, []string{"1"}},
		"parts, all": {"the album itself does not exist yet", JoinPartIDs([]string{"1", "2"}), nil, []string{"1", "2"}},
		"too many":   {"the checkpoint belongs to another post", JoinPartIDs([]string{"1", "2", "3"}), nil, nil},
		"too few":    {"a file is missing", JoinFileIDs([]string{"1"}), nil, nil},
		"no id":      {"the id would become part of an address", JoinPartIDs([]string{"1", "../2"}), nil, nil},
		"empty":      {"an empty checkpoint has no ids", "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			job := Job{Checkpoint: tc.checkpoint, Content: Content{Media: make([]File, 2)}}
			valid := func(id string) bool { return len(id) == 1 }
			if diff := cmp.Diff([][]string{tc.files, tc.parts}, [][]string{job.FileIDs(valid), job.PartIDs(valid)}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestErrorJoinsProblemAndRemedy(t *testing.T) {
	for want, err := range map[string]*Error{
		"X is busy": Errorf(ClassTransient, "%s is busy", "X"),
		"the token has ended; connect the account again": {Problem: "the token has ended", Remedy: "connect the account again"},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
