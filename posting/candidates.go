// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import "github.com/herald-social/herald/api/v1alpha1"

// MaxCandidates is how many bytes of JSON the candidates of all targets of a post may take
// together. Ten ordinary ones take 2.5 KiB; people look at one target at a time, and ask again
// for the others.
const MaxCandidates = 32 << 10

// SetCandidates enters the candidates of a target, as far as MaxCandidates and
// v1alpha1.MostCandidates allow, and Room: they take no space that a delivery needs to be
// recorded. Those of the post's other targets stay.
func SetCandidates(post *v1alpha1.Post, t *v1alpha1.TargetStatus, found []v1alpha1.Candidate) {
	t.Candidates = nil
	most, taken := min(MaxCandidates, MaxStorableSize(post)-Size(post)), 0
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
