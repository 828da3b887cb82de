// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import "github.com/herald-social/herald/api/v1alpha1"

// MaxCandidates is the maximum size of all candidates of a post, in bytes of JSON. Ten ordinary candidates take 2.5
// KiB. Users resolve one target at a time and can ask for the remaining candidates later.
const MaxCandidates = 32 << 10

// SetCandidates stores a target's candidates within MaxCandidates, v1alpha1.MostCandidates and MaxStorableSize, which
// leave room for the delivery record. It keeps the candidates of the post's other targets.
func SetCandidates(post *v1alpha1.Post, t *v1alpha1.TargetStatus, found []v1alpha1.Candidate) {
	t.Candidates = nil
	most, taken := min(MaxCandidates, Of(post).MaxStorableSize()-Of(post).Size()), 0
	for i := range post.Status.Targets {
		for c := range post.Status.Targets[i].Candidates {
			taken += encodedSize(&post.Status.Targets[i].Candidates[c])
		}
	}
	for i := range found[:min(len(found), v1alpha1.MostCandidates)] {
		if taken += encodedSize(&found[i]) + len(","); taken > most {
			return
		}
		t.Candidates = append(t.Candidates, found[i])
	}
}
