// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"fmt"
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestSetCandidates(t *testing.T) {
	t.Parallel()
	many := func(n, bytes int) (out []v1alpha1.Candidate) {
		for i := range n {
			out = append(out, v1alpha1.Candidate{ExternalID: fmt.Sprint(i), Text: strings.Repeat("<", bytes/6)})
		}
		return out
	}
	fits := encodedSize(&many(1, 840)[0]) + len(",")
	for name, tc := range map[string]struct {
		reason string
		others int
		found  []v1alpha1.Candidate
		want   int
		// left is the number of bytes that the post has left; 0 means no restriction.
		left int
	}{
		"None":      {"the account may be empty", 0, nil, 0, 0},
		"Few":       {"all are stored", 0, many(3, 60), 3, 0},
		"Many":      {"a user can review ten", 0, many(20, 60), 10, 0},
		"Full":      {"other targets have used the post's room for candidates", 40, many(10, 840), 0, 0},
		"AlmostAll": {"the status stores as many as fit", 35, many(10, 840), 2, 0},
		"Large":     {"the delivery record has priority", 0, many(10, 840), 0, 100},
		"LargeToo":  {"the remaining room is used", 0, many(10, 840), 1, 1000},
		"JustFits":  {"its room is used to the last byte", 0, many(10, 840), 1, fits},
		"NoComma":   {"a comma after a candidate needs room as well", 0, many(10, 840), 0, fits - 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			post := &v1alpha1.Post{Status: v1alpha1.PostStatus{Targets: make([]v1alpha1.TargetStatus, 5)}}
			post.Spec.Targets = make([]v1alpha1.PostTarget, 5)
			if tc.left > 0 {
				post.Spec.Targets[0].Caption = "a"
				post.Spec.Targets[0].Caption += strings.Repeat("a", Of(post).MaxStorableSize()-Of(post).Size()-tc.left)
			}
			rest := many(tc.others, 840)
			for i := 1; len(rest) > 0; i++ {
				n := min(len(rest), v1alpha1.MostCandidates)
				post.Status.Targets[i].Candidates, rest = rest[:n], rest[n:]
			}
			target := &post.Status.Targets[0]
			target.Candidates = many(10, 840) // from an earlier query
			SetCandidates(post, target, tc.found)
			if len(target.Candidates) != tc.want {
				t.Errorf("%s: %d are stored, want %d", tc.reason, len(target.Candidates), tc.want)
			}
		})
	}
}
