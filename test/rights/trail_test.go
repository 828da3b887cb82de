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

// namespaceEvent returns the event about a namespace that no longer accepts events.
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
	Entry("counts for a team", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, usage(ofTeam), client.DryRunAll)
	}, nobody),
	Entry("counts in a namespace that is no team's", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, usage(foreign), client.DryRunAll)
	}, policy, "team namespaces"),
	Entry("has what is counted go with something else", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, usage(ofTeam, func(u *v1alpha1.Usage) {
			u.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "a", UID: "1"}}
		}), client.DryRunAll)
	}, policy, "owners or finalizers"),
	Entry("tells of an object of Herald", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, eventFrom(), client.DryRunAll)
	}, nobody),
	Entry("tells of another object", func(ctx context.Context, who client.Client) error { return who.Create(ctx, forged(), client.DryRunAll) }, policy, "own kinds"),
	Entry("tells in the name of another program", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, eventFrom(func(e *eventsv1.Event) { e.ReportingController = "kubelet" }), client.DryRunAll)
	}, policy, "in its own name"),
	Entry("tells of an object of Herald in a namespace that is no team's", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, eventFrom(func(e *eventsv1.Event) { e.Namespace, e.Regarding.Namespace = foreign, foreign }), client.DryRunAll)
	}, policy, "team namespaces"),
	Entry("tells it in kube-system, under the reason that needs no team", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, eventFrom(func(e *eventsv1.Event) {
			e.Namespace, e.Regarding.Namespace, e.Reason = "kube-system", "kube-system", v1alpha1.ReasonNoTeam
		}), client.DryRunAll)
	}, policy, "team namespaces"),
	Entry("tells that a namespace has no team", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, eventFrom(func(e *eventsv1.Event) {
			e.Namespace, e.Regarding.Namespace, e.Reason = foreign, foreign, v1alpha1.ReasonNoTeam
		}), client.DryRunAll)
	}, nobody),
	Entry("tells of a Team, which has no namespace", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, eventFrom(func(e *eventsv1.Event) {
			e.Namespace, e.Regarding = metav1.NamespaceDefault, corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Team", Name: "acme"}
		}), client.DryRunAll)
	}, nobody),
	Entry("hides much in the annotations of an event", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, eventFrom(func(e *eventsv1.Event) { e.Annotations = map[string]string{"a": strings.Repeat("a", 200<<10)} }), client.DryRunAll)
	}, policy, "no labels, annotations"),
)

var _ = DescribeTable("The size of a Secret is limited", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("the apiserver's, of an account: no quota counts them", func(ctx context.Context) error {
		return broken.Create(ctx, ofAccount(ofTeam, filled(60<<10)), client.DryRunAll)
	}, nobody),
	Entry("the apiserver's, larger", func(ctx context.Context) error {
		return broken.Create(ctx, ofAccount(ofTeam, filled(65<<10)), client.DryRunAll)
	}, policy, "64 KiB"),
	Entry("the manager's, of uploads to a hundred accounts", func(ctx context.Context) error {
		s := ownedBy("Post", "herald-uploads-2")
		filled(500 << 10)(s)
		return powerful.Create(ctx, s, client.DryRunAll)
	}, nobody),
	Entry("the manager's, larger", func(ctx context.Context) error {
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
	Entry("tells of an object of Herald", func(ctx context.Context) error { return manager.Create(ctx, eventFrom(), client.DryRunAll) }, nobody),
	Entry("tells what a namespace that is deleted leaves in the store", func(ctx context.Context) error {
		return manager.Create(ctx, namespaceEvent(v1alpha1.ReasonFileAbandoned), client.DryRunAll)
	}, nobody),
	Entry("tells what may be published of it", func(ctx context.Context) error {
		return manager.Create(ctx, namespaceEvent(v1alpha1.ReasonOutcomeAbandoned), client.DryRunAll)
	}, nobody),
	Entry("tells that what is published of it is not recorded", func(ctx context.Context) error {
		return manager.Create(ctx, namespaceEvent(v1alpha1.ReasonRecordAbandoned), client.DryRunAll)
	}, nobody),
	Entry("tells something else of a namespace", func(ctx context.Context) error {
		return manager.Create(ctx, namespaceEvent("NodeNotReady"), client.DryRunAll)
	}, policy, "own kinds"),
	Entry("tells of its lease", func(ctx context.Context) error {
		return manager.Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "herald-system", Name: "lease"}, Reason: "LeaderElection", Source: corev1.EventSource{Component: "host_1"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: "herald-system", Name: "herald-manager"},
		}, client.DryRunAll)
	}, nobody),
	Entry("tells of something else there, in the old form", func(ctx context.Context) error {
		return manager.Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "herald-system", Name: "pod"}, Reason: "Killing", Source: corev1.EventSource{Component: "kubelet"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "herald-system", Name: "herald-apiserver-0"},
		}, client.DryRunAll)
	}, policy, "own kinds"),
	Entry("makes its lease", func(ctx context.Context) error {
		return manager.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "herald-system", Name: "herald-manager"}}, client.DryRunAll)
	}, nobody),
	Entry("makes the lease of another program", func(ctx context.Context) error {
		return manager.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"}}, client.DryRunAll)
	}, roles),
	Entry("asks itself to examine a connection", func(ctx context.Context) error {
		return change(ctx, manager, applied(), `{"metadata":{"annotations":{"social.herald.dev/probe-requested":"a"}}}`)
	}, nobody),
	Entry("notes which Secret a connection uses", func(ctx context.Context) error {
		return change(ctx, manager, applied(), `{"metadata":{"annotations":{"social.herald.dev/credentials-secret":"a"}}}`)
	}, nobody),
	Entry("has a connection use another Secret", func(ctx context.Context) error {
		return change(ctx, manager, applied(), `{"spec":{"credentialsSecretRef":{"name":"database"}}}`)
	}, policy, "may not change the spec"),
	Entry("notes a Secret of others as made by Herald", func(ctx context.Context) error {
		return change(ctx, manager, applied(), `{"metadata":{"annotations":{"credentials.social.herald.dev/database":"2026-12-01T09:00:00Z"}}}`)
	}, policy, "in the metadata of"),
	Entry("takes off a finalizer of a connection", func(ctx context.Context) error {
		return change(ctx, manager, applied(), `{"metadata":{"finalizers":null}}`)
	}, policy, "in the metadata of"),
)
