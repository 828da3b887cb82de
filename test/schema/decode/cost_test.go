// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// Limits on what the rules allocate in the API server, in KiB, for the two writes that deliver a post to two accounts.
// Allocation is most of their processor time and, unlike that time, nearly the same on every machine. They now allocate
// 426 and 570: the rule about cancelled posts and drafts is at the root, where it can read the status. At 497 and
// 1,051, they were a quarter of the API server's whole cost of a status write.
const (
	mostOfClaim  = 440
	mostOfRecord = 590
)

// claimedPost returns a text post to two accounts with claimed attempts.
func claimedPost() *v1alpha1.Post {
	post := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, ScheduledAt: &at}}
	post.TypeMeta, post.ObjectMeta = meta("Post")
	post.Status = v1alpha1.PostStatus{Conditions: conditions, ObservedGeneration: 1, Phase: v1alpha1.PhaseProcessing, Platforms: "x"}
	for i := range 2 {
		name := fmt.Sprintf("connection-%d", i)
		post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}, Caption: "A text."})
		post.Status.Targets = append(post.Status.Targets, v1alpha1.TargetStatus{
			Index: int32(i), Platform: v1alpha1.PlatformX, Phase: v1alpha1.PhaseProcessing, Reason: v1alpha1.ReasonProcessing, TryUntil: &at,
			Attempt: &v1alpha1.Attempt{Number: 1, ID: name, StartedAt: at, SendBefore: at, ContentHash: hash, AccountID: "1"},
		})
	}
	return post
}

func TestRulesCostLittle(t *testing.T) {
	claimed := claimedPost()
	scheduled, posted := claimed.DeepCopy(), claimed.DeepCopy()
	scheduled.Status.Phase, posted.Status.Phase = v1alpha1.PhaseScheduled, v1alpha1.PhasePosted
	posted.Status.Conditions = append([]metav1.Condition{}, conditions...)
	for i := range posted.Status.Targets {
		scheduled.Status.Targets[i] = v1alpha1.TargetStatus{Index: int32(i), Phase: v1alpha1.PhaseScheduled}
		target := &posted.Status.Targets[i]
		target.Phase, target.ExternalID, target.PostedAt, target.Attempt.Outcome = v1alpha1.PhasePosted, "7", &at, v1alpha1.OutcomePosted
	}
	d := load(t, "posts")
	for _, write := range []struct {
		name     string
		from, to *v1alpha1.Post
		most     uint64
	}{
		{"the claim", scheduled, claimed, mostOfClaim},
		{"the record", claimed, posted, mostOfRecord},
	} {
		if kib := d.allocated(t, write.from, write.to) >> 10; kib > write.most*overhead {
			t.Errorf("for %s the rules allocate %d KiB, more than %d", write.name, kib, write.most)
		} else {
			t.Logf("for %s the rules allocate %d KiB", write.name, kib)
		}
	}
}

// allocated returns how many bytes the rules allocate for one status write.
func (d *definition) allocated(t *testing.T, from, to *v1alpha1.Post) uint64 {
	t.Helper()
	var objects [2]map[string]any
	for i, post := range []*v1alpha1.Post{from, to} {
		data, err := json.Marshal(post)
		must.Succeed(t, err)
		if objects[i], err = d.prepare(data); err != nil {
			t.Fatal(err)
		}
	}
	const writes = 20
	var before, after runtime.MemStats
	for i := range writes + 1 {
		if i == 1 { // the first write fills pools
			runtime.ReadMemStats(&before)
		}
		if errs, _ := d.rules.Validate(t.Context(), nil, d.schema, objects[1], objects[0], celconfig.RuntimeCELCostBudget); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / writes
}
