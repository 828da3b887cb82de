// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// mix contains the number of posts in each phase, out of twenty. Most posts of an established team are finished.
var mix = []struct {
	phase v1alpha1.PostPhase
	posts int
}{
	{v1alpha1.PhasePosted, 12}, {v1alpha1.PhaseFailed, 2}, {v1alpha1.PhaseScheduled, 4}, {v1alpha1.PhaseDraft, 1}, {v1alpha1.PhaseProcessing, 1},
}

const mixed = 20

// countOf returns the number of a team's posts that match a filter; an empty value matches all.
func countOf(posts int, phase v1alpha1.PostPhase, platform v1alpha1.Platform) int {
	count := 0
	for nth := range posts {
		if (phase == "" || phase == phaseOf(nth/2)) && (platform == "" || platform == v1alpha1.PlatformX || platform == secondOf(nth)) {
			count++
		}
	}
	return count
}

// secondOf returns the second platform of a post; the first is X.
func secondOf(nth int) v1alpha1.Platform {
	return []v1alpha1.Platform{v1alpha1.PlatformThreads, v1alpha1.PlatformFacebook}[nth%2]
}

// postMix generates posts as Herald leaves them: in every phase, each to X and to either Threads or Facebook,
// alternately. They are spread evenly over the teams and over time.
type postMix struct {
	sample *delivered
	from   *content
	teams  []stack.Team
	begin  time.Time
}

// between is the time between two posts, counting all teams.
const between = time.Second

func newPostMix(sample *delivered, from *content, teams []stack.Team, posts int) *postMix {
	return &postMix{sample: sample, from: from, teams: teams, begin: time.Now().Add(-time.Duration(posts) * between).Truncate(time.Second)}
}

// post returns the i-th post, counting from zero.
func (f *postMix) post(i int) *v1alpha1.Post {
	at := f.begin.Add(time.Duration(i) * between)
	nth := i / len(f.teams) // within its team
	post := f.from.post(f.from.teams[0], 0, at, fmt.Sprint(i), 0, 1)
	post.Namespace = f.teams[i%len(f.teams)].Namespace
	asStored(post, at)
	phase := phaseOf(nth / 2)
	switch phase {
	case v1alpha1.PhaseDraft:
		post.Spec.Draft, post.Spec.ScheduledAt = true, nil
		f.sample.accepted.DeepCopyInto(&post.Status)
	case v1alpha1.PhaseProcessing:
		f.sample.claimed.DeepCopyInto(&post.Status)
	case v1alpha1.PhasePosted, v1alpha1.PhaseFailed:
		f.sample.posted.DeepCopyInto(&post.Status)
	case v1alpha1.PhaseScheduled, v1alpha1.PhaseCancelled:
		post.Spec.ScheduledAt = v1alpha1.NewTimePtr(at.Add(farAhead))
		f.sample.accepted.DeepCopyInto(&post.Status)
	}
	post.Status.Phase = phase
	for j := range post.Status.Targets {
		target := &post.Status.Targets[j]
		if target.Index == 1 {
			target.Platform = secondOf(nth)
		}
		if target.PostedAt != nil {
			target.PostedAt = v1alpha1.NewTimePtr(at)
		}
		if phase == v1alpha1.PhaseFailed && target.Index == 0 {
			target.State, target.ExternalID, target.ExternalURL, target.PostedAt = v1alpha1.TargetFailed, "", "", nil
			target.Phase, target.Reason, target.Message = phase, v1alpha1.ReasonRefused, "the platform refused the post"
			target.Blocked = &v1alpha1.Blocked{Reason: target.Reason, Problem: target.Message}
		}
	}
	return post
}

// asStored sets the fields that the API server sets in a post that is created at the given time.
func asStored(post *v1alpha1.Post, at time.Time) {
	post.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Post"}
	post.Name, post.GenerateName = "p"+strings.ToLower(rand.Text()[:25]), ""
	post.UID, post.Generation, post.CreationTimestamp = uuid.NewUUID(), 1, metav1.NewTime(at)
}

// phaseOf returns the phase of the n-th post.
func phaseOf(n int) v1alpha1.PostPhase {
	n %= mixed
	for _, part := range mix {
		if n < part.posts {
			return part.phase
		}
		n -= part.posts
	}
	return v1alpha1.PhasePosted
}
