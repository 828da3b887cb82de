// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/recurrence"
)

// madePost is a name like those that the apiserver generates.
var madePost = "p" + strings.Repeat("a", 25)

// sent returns the post that the apiserver creates for an API key, with the edits.
func sent(namespace string, edits ...func(*v1alpha1.Post)) *v1alpha1.Post {
	p := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: madePost, Labels: map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI},
			Annotations: map[string]string{
				v1alpha1.BornAnnotation: "2026-12-01T09:00:00Z", v1alpha1.RequestAnnotation: "v1:aa",
				v1alpha1.TraceparentAnnotation: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			},
			Finalizers: []string{v1alpha1.DeliveryFinalizer},
		},
		Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText,
			Targets:  []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "acme-x"}, Caption: "We launched."}},
		},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

// draft returns a draft that GitOps applied.
func draft() *v1alpha1.Post {
	return sent(ofTeam, func(p *v1alpha1.Post) {
		p.Name, p.Labels, p.Finalizers = "launch", map[string]string{"app": "a"}, []string{"example.com/kept"}
		p.Annotations = map[string]string{"note": "ours", v1alpha1.BornAnnotation: "2026-12-01T09:00:00Z", v1alpha1.SettleAnnotation: "0=not-sent", v1alpha1.ListCandidatesAnnotation: "now"}
		p.Spec.Draft = true
	})
}

// change patches one of the suite's objects as a dry run.
func change(ctx context.Context, who client.Client, of client.Object, patch string) error {
	return who.Patch(ctx, of, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
}

// changeStatus patches the status of one of the suite's objects as a dry run.
func changeStatus(ctx context.Context, who client.Client, of client.Object, patch string) error {
	return who.Status().Patch(ctx, of, client.RawPatch(types.MergePatchType, []byte(patch)), &client.SubResourcePatchOptions{
		PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}},
	})
}

// signature is the annotation that the apiserver sets when a user makes a change.
const signature = `"metadata":{"annotations":{"social.herald.dev/last-author":"ada"}}`

var _ = DescribeTable("With any roles, the apiserver is restricted by policies: it creates a Post", func(ctx SpecContext, p *v1alpha1.Post, words ...string) {
	outcomeIs(broken.Create(ctx, p, client.DryRunAll), words...)
},
	Entry("for an API key", sent(ofTeam), nobody),
	Entry("for a user", sent(ofTeam, func(p *v1alpha1.Post) {
		p.Labels[v1alpha1.OriginLabel], p.Annotations[v1alpha1.AuthorAnnotation] = v1alpha1.OriginWeb, "ada"
	}), nobody),
	Entry("for a user's agent whose posts wait for review", sent(ofTeam, func(p *v1alpha1.Post) {
		p.Annotations[v1alpha1.AuthorAnnotation], p.Annotations[v1alpha1.AgentAnnotation] = "ada", "Scribe"
		p.Annotations[v1alpha1.WantedAtAnnotation], p.Spec.Draft = v1alpha1.WantedNow, true
	}), nobody),
	Entry("with another program's labels and annotations", sent(ofTeam, func(p *v1alpha1.Post) {
		p.Labels["example.com/cost-center"], p.Annotations["example.com/checked"] = "7", "yes"
	}), nobody),
	Entry("outside team namespaces", sent(foreign), policy, "team namespaces"),
	Entry("in Herald's own namespace", sent("herald-system"), policy, "team namespaces"),
	Entry("without the origin label", sent(ofTeam, func(p *v1alpha1.Post) { p.Labels = nil }), policy, "the label social.herald.dev/origin"),
	Entry("of a user without a name", sent(ofTeam, func(p *v1alpha1.Post) { p.Labels[v1alpha1.OriginLabel] = v1alpha1.OriginWeb }), policy, "social.herald.dev/author"),
	Entry("with a name that users choose", sent(ofTeam, func(p *v1alpha1.Post) { p.Name = "launch-too" }), policy, "a generated name"),
	Entry("with an owner of its choice", sent(ofTeam, func(p *v1alpha1.Post) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "a", UID: "1"}}
	}), policy, "without owners"),
	Entry("that cannot be deleted", sent(ofTeam, func(p *v1alpha1.Post) { p.Finalizers = append(p.Finalizers, "example.com/kept") }), policy, "finalizer"),
	Entry("with a verdict before it was sent", sent(ofTeam, func(p *v1alpha1.Post) {
		p.Annotations[v1alpha1.SettleAnnotation] = "0=posted:1"
	}), policy, "record their origin"),
	Entry("with a Herald label that the apiserver does not set", sent(ofTeam, func(p *v1alpha1.Post) { p.Labels[v1alpha1.TeamLabel] = "acme" }), policy, "record their origin"),
)

var _ = DescribeTable("With any roles, the apiserver is restricted by policies: in an applied Post it", func(ctx SpecContext, patch string, words ...string) {
	outcomeIs(change(ctx, broken, draft(), patch), words...)
},
	Entry("cancels it, for an API key", `{"spec":{"cancelled":true}}`, nobody),
	Entry("cancels it, for a user", `{`+signature+`,"spec":{"cancelled":true}}`, nobody),
	Entry("publishes it, for a user", `{`+signature+`,"spec":{"draft":null}}`, nobody),
	Entry("changes its text, for a user", `{`+signature+`,"spec":{"targets":[{"connectionRef":{"name":"acme-x"},"caption":"other"}]}}`, nobody),
	Entry("reschedules it, for a user", `{`+signature+`,"spec":{"draft":null,"scheduledAt":"2026-12-01T09:00:00Z"}}`, nobody),
	Entry("records a user's verdict", `{"metadata":{"annotations":{"social.herald.dev/last-author":"ada","social.herald.dev/settle":"0=posted:1"}}}`, nobody),
	Entry("publishes it without a last author", `{"spec":{"draft":null}}`, policy, "for a user named in"),
	Entry("changes its text without a last author", `{"spec":{"targets":[{"connectionRef":{"name":"acme-x"},"caption":"other"}]}}`, policy, "for a user named in"),
	Entry("cancels it and changes another field", `{"spec":{"cancelled":true,"onUnknownOutcome":"retry"}}`, policy, "for a user named in"),
	Entry("requests the account's posts, for a user", `{"metadata":{"annotations":{"social.herald.dev/list-candidates":"now"}}}`, nobody),
	Entry("records a verdict without a last author", `{"metadata":{"annotations":{"social.herald.dev/settle":"0=posted:1"}}}`, policy, "for a user named in"),
	Entry("dismisses it, for a user", `{"metadata":{"annotations":{"social.herald.dev/last-author":"ada","social.herald.dev/dismissed":"2026-12-01T09:00:00Z"}}}`, nobody),
	Entry("dismisses it without a last author", `{"metadata":{"annotations":{"social.herald.dev/dismissed":"2026-12-01T09:00:00Z"}}}`, policy, "for a user named in"),
	Entry("removes a verdict", `{"metadata":{"annotations":{"social.herald.dev/last-author":"ada","social.herald.dev/settle":null}}}`, policy, "in the metadata of"),
	Entry("changes its creation time, so that a restored post is published again", `{"metadata":{"annotations":{"social.herald.dev/born-at":"2030-12-01T09:00:00Z"}}}`, policy, "in the metadata of"),
	Entry("removes its creation time, which identifies a restored post", `{"metadata":{"annotations":{"social.herald.dev/born-at":null}}}`, policy, "in the metadata of"),
	Entry("changes its author", `{"metadata":{"annotations":{"social.herald.dev/author":"grace"}}}`, policy, "in the metadata of"),
	Entry("labels it as its own", `{"metadata":{"labels":{"social.herald.dev/origin":"api"}}}`, policy, "in the metadata of"),
	Entry("changes its labels, so that a GitOps tool prunes it", `{"metadata":{"labels":{"app":"other"}}}`, policy, "in the metadata of"),
	Entry("adds an owner, so that Kubernetes deletes it", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"a","uid":"1"}]}}`, policy, "in the metadata of"),
	Entry("adds a finalizer", `{"metadata":{"finalizers":["example.com/kept","example.com/more"]}}`, policy, "in the metadata of"),
	Entry("removes its finalizer", `{"metadata":{"finalizers":null}}`, policy, "in the metadata of"),
)

// schedules is part of the refusal of a Post that the manager creates.
const schedules = "can only create the scheduled Posts of a PostSchedule"

var _ = DescribeTable("With any roles, policies restrict", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("the apiserver, which may not delete a Post", func(ctx context.Context) error { return broken.Delete(ctx, draft(), client.DryRunAll) }, policy, "cannot delete Posts"),
	Entry("the apiserver, which may not mark a Post as published", func(ctx context.Context) error {
		return changeStatus(ctx, broken, draft(), `{"status":{"phase":"posted"}}`)
	}, policy, "write their status"),
	Entry("the apiserver, which may write a PostSchedule for a person", writing(byAda), nobody),
	Entry("the apiserver, which may not write a PostSchedule for nobody", writing(), policy, "named in the annotation"),
	Entry("the apiserver, which may not write a PostSchedule outside team namespaces", writing(byAda, func(s *v1alpha1.PostSchedule) { s.Namespace = foreign }), policy, "in team namespaces"),
	Entry("the apiserver, whose PostSchedule has an owner", writing(byAda, func(s *v1alpha1.PostSchedule) {
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "a", UID: "1"}}
	}), policy, "without labels, finalizers and owners"),
	Entry("the manager, which may not create a Post of its own", func(ctx context.Context) error { return powerful.Create(ctx, sent(ofTeam), client.DryRunAll) }, policy, schedules),
	Entry("the manager, which may create the Post of a PostSchedule", creating(ofTeam), nobody),
	Entry("the manager, whose Post another tool of the cluster labels", creating(ofTeam, func(p *v1alpha1.Post) {
		p.Labels["example.com/cost-center"] = "7"
	}), nobody),
	Entry("the manager, whose Post has the label of its team's shard", creating(ofTeam, func(p *v1alpha1.Post) {
		p.Labels[v1alpha1.ShardLabel] = "03"
	}), nobody),
	Entry("the manager, whose Post has the label of a shard that cannot exist", creating(ofTeam, func(p *v1alpha1.Post) {
		p.Labels[v1alpha1.ShardLabel] = "other"
	}), policy, schedules),
	Entry("the manager, outside team namespaces", creating(foreign), policy, schedules),
	Entry("the manager, whose Post has no owner", creating(ofTeam, func(p *v1alpha1.Post) { p.OwnerReferences = nil }), policy, schedules),
	Entry("the manager, whose Post has an owner of another kind", creating(ofTeam, func(p *v1alpha1.Post) {
		p.OwnerReferences[0].Kind = "Team"
	}), policy, schedules),
	Entry("the manager, whose Post has a second owner", creating(ofTeam, func(p *v1alpha1.Post) {
		p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "a", UID: "1"})
	}), policy, schedules),
	Entry("the manager, whose Post has a name that users would choose", creating(ofTeam, func(p *v1alpha1.Post) { p.Name = "monday-launch" }), policy, schedules),
	Entry("the manager, whose Post has the label of the API's posts", creating(ofTeam, func(p *v1alpha1.Post) {
		p.Labels[v1alpha1.OriginLabel] = v1alpha1.OriginAPI
	}), policy, schedules),
	Entry("the manager, whose Post lacks the label of its schedule", creating(ofTeam, func(p *v1alpha1.Post) {
		p.Labels = map[string]string{v1alpha1.ShardLabel: "03"}
	}), policy, schedules),
	Entry("the manager, whose Post names a user as its author", creating(ofTeam, func(p *v1alpha1.Post) {
		p.Annotations = map[string]string{v1alpha1.AuthorAnnotation: "ada"}
	}), policy, schedules),
	Entry("the manager, whose Post is due immediately", creating(ofTeam, func(p *v1alpha1.Post) { p.Spec.ScheduledAt = nil }), policy, schedules),
	Entry("the manager, which may not delete an unpublished Post", func(ctx context.Context) error { return powerful.Delete(ctx, draft(), client.DryRunAll) }, policy, "can only delete Posts whose status.finished is true"),
)

// recurring returns a schedule that an editor applies, with the edits.
func recurring(name string, edits ...func(*v1alpha1.PostSchedule)) *v1alpha1.PostSchedule {
	s := &v1alpha1.PostSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: ofTeam, Name: name, UID: "2"},
		Spec: v1alpha1.PostScheduleSpec{Schedule: "@weekly", Template: v1alpha1.PostTemplate{
			Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "acme-x"}, Caption: "a"}},
		}},
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// byAda sets the user for whom the apiserver writes a schedule.
func byAda(s *v1alpha1.PostSchedule) {
	s.Annotations = map[string]string{v1alpha1.LastAuthorAnnotation: "ada"}
}

// writing returns the apiserver's attempt to create a schedule, as a dry run, with the edits.
func writing(edits ...func(*v1alpha1.PostSchedule)) func(context.Context) error {
	return func(ctx context.Context) error {
		return broken.Create(ctx, recurring("friday", edits...), client.DryRunAll)
	}
}

// creating returns the manager's attempt to create a post for a schedule, as a dry run, with the edits.
func creating(namespace string, edits ...func(*v1alpha1.Post)) func(context.Context) error {
	return func(ctx context.Context) error {
		p := recurrence.PostOf(recurring("monday"), recurrence.Occurrence{At: time.Date(2026, 12, 7, 8, 0, 0, 0, time.UTC)})
		p.Namespace = namespace
		for _, edit := range edits {
			edit(p)
		}
		return powerful.Create(ctx, p, client.DryRunAll)
	}
}

// finished returns one of the suite's posts that is finished.
func finished() *v1alpha1.Post {
	return sent(ofTeam, func(p *v1alpha1.Post) { p.Name, p.Spec.Draft = "p"+strings.Repeat("o", 25), true })
}

var _ = Describe("With its installed roles, the manager", func() {
	It("adds and removes its finalizer on a Team, and does not delete Teams", func(ctx SpecContext) {
		outcomeIs(change(ctx, manager, acme(), `{"metadata":{"finalizers":["social.herald.dev/records"]}}`), nobody)
		outcomeIs(manager.Delete(ctx, acme(), client.DryRunAll), roles)
		outcomeIs(powerful.Delete(ctx, acme(), client.DryRunAll), policy, "cannot create or delete Teams")
	})

	It("deletes a post past its retention, but not an unpublished one", func(ctx SpecContext) {
		post := finished()
		Expect(admin.Create(ctx, post)).To(Succeed())
		outcomeIs(manager.Delete(ctx, post), policy, "can only delete Posts whose status.finished is true")
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"finished":true}}`))
		Expect(manager.Status().Patch(ctx, post, patch)).To(Succeed())
		Expect(manager.Patch(ctx, post, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		outcomeIs(manager.Delete(ctx, post, client.Preconditions{UID: &post.UID, ResourceVersion: &post.ResourceVersion}), nobody)
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(post), post))).To(BeTrue())
	})
})

var _ = DescribeTable("With its installed roles, in a Post the manager", func(ctx SpecContext, patch string, words ...string) {
	outcomeIs(change(ctx, manager, draft(), patch), words...)
},
	Entry("adds its finalizer", `{"metadata":{"finalizers":["example.com/kept","social.herald.dev/delivery"]}}`, nobody),
	Entry("removes a verdict that it has applied", `{"metadata":{"annotations":{"social.herald.dev/settle":null}}}`, nobody),
	Entry("removes a request that it has served", `{"metadata":{"annotations":{"social.herald.dev/list-candidates":null}}}`, nobody),
	Entry("does both", `{"metadata":{"finalizers":["example.com/kept","social.herald.dev/delivery"],"annotations":{"social.herald.dev/settle":null}}}`, nobody),
	Entry("changes its text", `{"spec":{"targets":[{"connectionRef":{"name":"acme-x"},"caption":"other"}]}}`, policy, "cannot change the spec"),
	Entry("publishes a draft", `{"spec":{"draft":null}}`, policy, "cannot change the spec"),
	Entry("records a verdict", `{"metadata":{"annotations":{"social.herald.dev/settle":"0=posted:1"}}}`, policy, "in the metadata of"),
	Entry("sets its author", `{"metadata":{"annotations":{"social.herald.dev/author":"grace"}}}`, policy, "in the metadata of"),
	Entry("removes its creation time, which identifies a restored post", `{"metadata":{"annotations":{"social.herald.dev/born-at":null}}}`, policy, "in the metadata of"),
	Entry("removes another program's finalizer", `{"metadata":{"finalizers":null}}`, policy, "in the metadata of"),
	Entry("adds an owner, so that Kubernetes deletes it", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"a","uid":"1"}]}}`, policy, "in the metadata of"),
	Entry("changes its labels, so that a GitOps tool prunes it", `{"metadata":{"labels":{"app":"other"}}}`, policy, "in the metadata of"),
)

var _ = Describe("With its installed roles, the apiserver", func() {
	It("stores and cancels a post, and the manager removes its finalizer", func(ctx SpecContext) {
		stored := sent(ofTeam, func(p *v1alpha1.Post) { p.Name, p.Spec.Draft = "p"+strings.Repeat("b", 25), true })
		Expect(apiserver.Create(ctx, stored)).To(Succeed())
		cancel := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancelled":true}}`))
		Expect(apiserver.Patch(ctx, stored, cancel)).To(Succeed())
		outcomeIs(apiserver.Delete(ctx, stored), roles)
		Expect(admin.Delete(ctx, stored)).To(Succeed())
		release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		Expect(manager.Patch(ctx, stored, release)).To(Succeed())
		Expect(client.IgnoreNotFound(admin.Get(ctx, client.ObjectKeyFromObject(stored), stored))).To(Succeed())
	})
})
