// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// usage returns a Usage, with the edits.
func usage(namespace string, edits ...func(*v1alpha1.Usage)) *v1alpha1.Usage {
	u := &v1alpha1.Usage{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x-posts-2026-12"},
		Spec:       v1alpha1.UsageSpec{Resource: v1alpha1.ResourceXPosts, Period: "2026-12"},
	}
	for _, edit := range edits {
		edit(u)
	}
	return u
}

// eventFrom returns an event from a Herald process, with the edits.
func eventFrom(edits ...func(*eventsv1.Event)) *eventsv1.Event {
	e := event()
	e.Regarding.APIVersion = v1alpha1.GroupVersion.String()
	for _, edit := range edits {
		edit(e)
	}
	return e
}

// namespaceEvent returns an event about the team's namespace, which no longer accepts events.
func namespaceEvent(reason string) *eventsv1.Event {
	return eventFrom(func(e *eventsv1.Event) {
		e.Namespace, e.Reason, e.ReportingController = metav1.NamespaceDefault, reason, "herald-media"
		e.Regarding = corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: ofTeam}
	})
}

// forged returns an event from another program about another object.
func forged() *eventsv1.Event {
	return eventFrom(func(e *eventsv1.Event) {
		e.Namespace, e.ReportingController = "kube-system", "kubelet"
		e.Regarding = corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "kube-system", Name: "etcd"}
	})
}

var _ = DescribeTable("With any roles, both accounts are restricted by policies: each", func(ctx SpecContext, attempt func(context.Context, client.Client) error, words ...string) {
	for _, who := range []client.Client{powerful, broken} {
		outcomeIs(attempt(ctx, who), words...)
	}
},
	Entry("counts a team's usage", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, usage(ofTeam), client.DryRunAll)
	}, nobody),
	Entry("counts outside team namespaces", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, usage(foreign), client.DryRunAll)
	}, policy, "team namespaces"),
	Entry("adds an owner to a Usage", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, usage(ofTeam, func(u *v1alpha1.Usage) {
			u.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "a", UID: "1"}}
		}), client.DryRunAll)
	}, policy, "owners or finalizers"),
	Entry("writes an event about one of Herald's objects", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, eventFrom(), client.DryRunAll)
	}, nobody),
	Entry("writes an event about another object", func(ctx context.Context, who client.Client) error { return who.Create(ctx, forged(), client.DryRunAll) }, policy, "own kinds"),
	Entry("writes an event in another program's name", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, eventFrom(func(e *eventsv1.Event) { e.ReportingController = "kubelet" }), client.DryRunAll)
	}, policy, "in its own name"),
	Entry("writes an event outside team namespaces", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, eventFrom(func(e *eventsv1.Event) { e.Namespace, e.Regarding.Namespace = foreign, foreign }), client.DryRunAll)
	}, policy, "team namespaces"),
	Entry("writes an event with the reason NoTeam in kube-system", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, eventFrom(func(e *eventsv1.Event) {
			e.Namespace, e.Regarding.Namespace, e.Reason = "kube-system", "kube-system", v1alpha1.ReasonNoTeam
		}), client.DryRunAll)
	}, policy, "team namespaces"),
	Entry("writes an event with the reason NoTeam", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, eventFrom(func(e *eventsv1.Event) {
			e.Namespace, e.Regarding.Namespace, e.Reason = foreign, foreign, v1alpha1.ReasonNoTeam
		}), client.DryRunAll)
	}, nobody),
	Entry("writes an event about a Team, which has no namespace", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, eventFrom(func(e *eventsv1.Event) {
			e.Namespace, e.Regarding = metav1.NamespaceDefault, corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Team", Name: "acme"}
		}), client.DryRunAll)
	}, nobody),
	Entry("writes an event with annotations", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, eventFrom(func(e *eventsv1.Event) { e.Annotations = map[string]string{"a": strings.Repeat("a", 200<<10)} }), client.DryRunAll)
	}, policy, "no labels, annotations"),
)

var _ = DescribeTable("The size of a Secret is limited", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("the apiserver's Secret of an account, which no quota counts", func(ctx context.Context) error {
		return broken.Create(ctx, ofAccount(ofTeam, filled(60<<10)), client.DryRunAll)
	}, nobody),
	Entry("a larger Secret of the apiserver", func(ctx context.Context) error {
		return broken.Create(ctx, ofAccount(ofTeam, filled(65<<10)), client.DryRunAll)
	}, policy, "64 KiB"),
	Entry("the manager's Secret with uploads to a hundred accounts", func(ctx context.Context) error {
		s := ownedBy("Post", "herald-uploads-2")
		filled(500 << 10)(s)
		return powerful.Create(ctx, s, client.DryRunAll)
	}, nobody),
	Entry("a larger Secret of the manager", func(ctx context.Context) error {
		s := ownedBy("Post", "herald-uploads-2")
		filled(513 << 10)(s)
		return powerful.Create(ctx, s, client.DryRunAll)
	}, policy, "512 KiB"),
)

// filled puts the given number of bytes into a Secret.
func filled(bytes int) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Data = map[string][]byte{"token": make([]byte, bytes)} }
}

var _ = DescribeTable("With its installed roles, the manager", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("writes an event about one of Herald's objects", func(ctx context.Context) error { return manager.Create(ctx, eventFrom(), client.DryRunAll) }, nobody),
	Entry("writes an event about a deleted namespace's files in the store", func(ctx context.Context) error {
		return manager.Create(ctx, namespaceEvent(v1alpha1.ReasonFileAbandoned), client.DryRunAll)
	}, nobody),
	Entry("writes an event about a deleted namespace's unknown outcomes", func(ctx context.Context) error {
		return manager.Create(ctx, namespaceEvent(v1alpha1.ReasonOutcomeAbandoned), client.DryRunAll)
	}, nobody),
	Entry("writes an event about a deleted namespace's missing records", func(ctx context.Context) error {
		return manager.Create(ctx, namespaceEvent(v1alpha1.ReasonRecordAbandoned), client.DryRunAll)
	}, nobody),
	Entry("writes another event about a namespace", func(ctx context.Context) error {
		return manager.Create(ctx, namespaceEvent("NodeNotReady"), client.DryRunAll)
	}, policy, "own kinds"),
	Entry("writes an event about its Lease", func(ctx context.Context) error {
		return manager.Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "herald-system", Name: "lease"}, Reason: "LeaderElection", Source: corev1.EventSource{Component: "host_1"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: "herald-system", Name: "herald-manager"},
		}, client.DryRunAll)
	}, nobody),
	Entry("writes a legacy event about another object there", func(ctx context.Context) error {
		return manager.Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "herald-system", Name: "pod"}, Reason: "Killing", Source: corev1.EventSource{Component: "kubelet"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "herald-system", Name: "herald-apiserver-0"},
		}, client.DryRunAll)
	}, policy, "own kinds"),
	Entry("creates its Lease", func(ctx context.Context) error {
		return manager.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "herald-system", Name: "herald-manager"}}, client.DryRunAll)
	}, nobody),
	Entry("creates another program's Lease", func(ctx context.Context) error {
		return manager.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"}}, client.DryRunAll)
	}, roles),
	Entry("requests a check of a connection", func(ctx context.Context) error {
		return change(ctx, manager, applied(), `{"metadata":{"annotations":{"social.herald.dev/probe-requested":"a"}}}`)
	}, nobody),
	Entry("records which Secret a connection uses", func(ctx context.Context) error {
		return change(ctx, manager, applied(), `{"metadata":{"annotations":{"social.herald.dev/credentials-secret":"a"}}}`)
	}, nobody),
	Entry("switches a connection to another Secret", func(ctx context.Context) error {
		return change(ctx, manager, applied(), `{"spec":{"credentialsSecretRef":{"name":"database"}}}`)
	}, policy, "cannot change the spec"),
	Entry("records another program's Secret as created by Herald", func(ctx context.Context) error {
		return change(ctx, manager, applied(), `{"metadata":{"annotations":{"credentials.social.herald.dev/database":"2026-12-01T09:00:00Z"}}}`)
	}, policy, "in the metadata of"),
	Entry("removes a connection's finalizer", func(ctx context.Context) error {
		return change(ctx, manager, applied(), `{"metadata":{"finalizers":null}}`)
	}, policy, "in the metadata of"),
)
