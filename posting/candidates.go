// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import "github.com/herald-social/herald/api/v1alpha1"

// MaxCandidates is the maximum size of the candidates of all targets of a post together, in bytes of JSON. Ten
// ordinary ones take 2.5 KiB. People look at one target at a time, and can query the others afterwards.
const MaxCandidates = 32 << 10

// SetCandidates stores the candidates of a target within the limits of MaxCandidates, v1alpha1.MostCandidates and
// MaxStorableSize: they must not use space that the record of a delivery needs. The candidates of the post's other
// targets are kept.
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
