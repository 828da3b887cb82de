// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// awaited returns the Media that the apiserver creates for an upload, with the edits.
func awaited(namespace string, edits ...func(*v1alpha1.Media)) *v1alpha1.Media {
	m := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "m" + strings.Repeat("a", 25), Labels: map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI},
			Annotations: map[string]string{v1alpha1.RequestAnnotation: "v1:aa", v1alpha1.AuthorAnnotation: "ada", v1alpha1.AgentAnnotation: "Scribe"},
			Finalizers:  []string{v1alpha1.MediaFileFinalizer},
		},
		Spec: v1alpha1.MediaSpec{FileName: "a.jpg", MimeType: v1alpha1.MimeJPEG, SizeBytes: 1},
	}
	for _, edit := range edits {
		edit(m)
	}
	return m
}

// pending and verified are the suite's Media: one that waits for its upload, and one that no post uses.
func pending() *v1alpha1.Media {
	return awaited(ofTeam, func(m *v1alpha1.Media) { m.Name = "m" + strings.Repeat("p", 25) })
}

func verified(edits ...func(*v1alpha1.Media)) *v1alpha1.Media {
	return awaited(ofTeam, append([]func(*v1alpha1.Media){func(m *v1alpha1.Media) { m.Name = "m" + strings.Repeat("v", 25) }}, edits...)...)
}

func retained() *v1alpha1.Media {
	return verified(func(m *v1alpha1.Media) { m.Name, m.Spec.WhenUnused = "kept", v1alpha1.KeepWhenUnused })
}

// storeMedia stores the Media of the suite.
func storeMedia(ctx context.Context) error {
	for _, m := range []*v1alpha1.Media{pending(), verified(), retained()} {
		if err := admin.Create(ctx, m); err != nil {
			return err
		}
		if m.Name == pending().Name {
			continue
		}
		m.Status = v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, ETag: "a", UnusedSince: v1alpha1.NewTimePtr(m.CreationTimestamp.Time)}
		if err := admin.Status().Update(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

var _ = DescribeTable("With any roles, the apiserver is restricted by policies: it creates a Media", func(ctx SpecContext, m *v1alpha1.Media, words ...string) {
	outcomeIs(broken.Create(ctx, m, client.DryRunAll), words...)
},
	Entry("for an upload", awaited(ofTeam), nobody),
	Entry("outside team namespaces", awaited(foreign), policy, "team namespaces"),
	Entry("that the manager fetches from any URL", awaited(ofTeam, func(m *v1alpha1.Media) {
		m.Spec.Source = &v1alpha1.MediaSource{URL: "https://example.com/a.jpg"}
	}), policy, "for uploads"),
	Entry("that is never deleted", awaited(ofTeam, func(m *v1alpha1.Media) { m.Spec.WhenUnused = v1alpha1.KeepWhenUnused }), policy, "for uploads"),
	Entry("without the origin label", awaited(ofTeam, func(m *v1alpha1.Media) { m.Labels = nil }), policy, "social.herald.dev/origin=api"),
	Entry("with a name that users choose", awaited(ofTeam, func(m *v1alpha1.Media) { m.Name = "logo" }), policy, "a generated name"),
	Entry("with an owner of its choice", awaited(ofTeam, func(m *v1alpha1.Media) {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "a", UID: "1"}}
	}), policy, "without owners"),
	Entry("that cannot be deleted", awaited(ofTeam, func(m *v1alpha1.Media) { m.Finalizers = append(m.Finalizers, "example.com/kept") }), policy, "finalizer"),
	Entry("whose file would not be deleted", awaited(ofTeam, func(m *v1alpha1.Media) { m.Finalizers = nil }), policy, "finalizer"),
)

var _ = DescribeTable("With any roles, the apiserver is restricted by policies: in a Media it", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("records the upload deadline", func(ctx context.Context) error {
		return change(ctx, broken, pending(), `{"metadata":{"annotations":{"social.herald.dev/upload-until":"2026-12-01T09:00:00Z"}}}`)
	}, nobody),
	Entry("records that the file was verified", func(ctx context.Context) error {
		return changeStatus(ctx, broken, pending(), `{"status":{"phase":"uploaded","etag":"b","sizeBytes":1}}`)
	}, nobody),
	Entry("records that the file was rejected", func(ctx context.Context) error {
		return changeStatus(ctx, broken, pending(), `{"status":{"phase":"rejected","sizeBytes":1}}`)
	}, nobody),
	Entry("resets the status of a verified file", func(ctx context.Context) error {
		return changeStatus(ctx, broken, verified(), `{"status":{"phase":"rejected"}}`)
	}, policy, "the status of a pending Media"),
	Entry("marks a pending file as expired", func(ctx context.Context) error {
		return changeStatus(ctx, broken, pending(), `{"status":{"phase":"expired"}}`)
	}, policy, "the status of a pending Media"),
	Entry("redirects uploads", func(ctx context.Context) error {
		return changeStatus(ctx, broken, pending(), `{"status":{"phase":"uploaded","etag":"b","uploadURL":"https://example.com/","uploadURLExpiresAt":"2026-12-01T09:00:00Z"}}`)
	}, policy, "the status of a pending Media"),
	Entry("marks it as unused, so that the manager deletes it", func(ctx context.Context) error {
		return changeStatus(ctx, broken, pending(), `{"status":{"phase":"uploaded","etag":"b","unusedSince":"2000-12-01T09:00:00Z"}}`)
	}, policy, "the status of a pending Media"),
	Entry("prevents its deletion", func(ctx context.Context) error {
		return change(ctx, broken, pending(), `{"spec":{"whenUnused":"keep"}}`)
	}, policy, "can only change a Media's"),
	Entry("assigns it to another request", func(ctx context.Context) error {
		return change(ctx, broken, pending(), `{"metadata":{"annotations":{"social.herald.dev/request":"v1:bb"}}}`)
	}, policy, "can only change a Media's"),
	Entry("removes its origin", func(ctx context.Context) error {
		return change(ctx, broken, pending(), `{"metadata":{"labels":null}}`)
	}, policy, "can only change a Media's"),
	Entry("adds an owner, so that Kubernetes deletes it", func(ctx context.Context) error {
		return change(ctx, broken, pending(), `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"a","uid":"1"}]}}`)
	}, policy, "can only change a Media's"),
	Entry("removes its finalizer before the file is deleted", func(ctx context.Context) error {
		return change(ctx, broken, pending(), `{"metadata":{"finalizers":null}}`)
	}, policy, "can only change a Media's"),
	Entry("deletes it", func(ctx context.Context) error { return broken.Delete(ctx, pending(), client.DryRunAll) }, policy, "cannot delete Media"),
)

var _ = DescribeTable("With its installed roles, in a Media the manager", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("removes its finalizer", func(ctx context.Context) error {
		return change(ctx, manager, pending(), `{"metadata":{"finalizers":null}}`)
	}, nobody),
	Entry("records where its file is", func(ctx context.Context) error {
		of := pending()
		if err := admin.Get(ctx, client.ObjectKeyFromObject(of), of); err != nil {
			return err
		}
		return change(ctx, manager, of, `{"metadata":{"annotations":{"social.herald.dev/file":"`+of.Namespace+"/"+string(of.UID)+`"}}}`)
	}, nobody),
	Entry("records another Media's file", func(ctx context.Context) error {
		return change(ctx, manager, pending(), `{"metadata":{"annotations":{"social.herald.dev/file":"elsewhere/8d0c0f4e"}}}`)
	}, policy, "the key of its own file"),
	Entry("assigns it to a request", func(ctx context.Context) error {
		return change(ctx, manager, pending(), `{"metadata":{"annotations":{"social.herald.dev/request":"v1:bb"}}}`)
	}, policy, "can only change a Media's"),
	Entry("deletes one that no post uses", func(ctx context.Context) error { return manager.Delete(ctx, verified(), client.DryRunAll) }, nobody),
	Entry("deletes one with whenUnused=keep", func(ctx context.Context) error { return manager.Delete(ctx, retained(), client.DryRunAll) }, policy, "can only delete Media"),
	Entry("deletes a pending one", func(ctx context.Context) error { return manager.Delete(ctx, pending(), client.DryRunAll) }, policy, "can only delete Media"),
	Entry("makes one unused and deletes it", func(ctx context.Context) error {
		return change(ctx, manager, retained(), `{"spec":{"whenUnused":"delete"}}`)
	}, policy, "can only change a Media's"),
	Entry("adds a finalizer of its choice", func(ctx context.Context) error {
		return change(ctx, manager, pending(), `{"metadata":{"finalizers":["social.herald.dev/media-file","example.com/kept"]}}`)
	}, policy, "can only change a Media's"),
	Entry("adds an owner, so that Kubernetes deletes it", func(ctx context.Context) error {
		return change(ctx, manager, pending(), `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"a","uid":"1"}]}}`)
	}, policy, "can only change a Media's"),
	Entry("creates one", func(ctx context.Context) error { return powerful.Create(ctx, awaited(ofTeam), client.DryRunAll) }, policy, "cannot create Media"),
)

// ofHerald are the roles of Herald's own service accounts, which are not meant for users.
var ofHerald = []string{"herald-manager", "herald-apiserver", "herald-release"}

var _ = Describe("A file's upload URL", func() {
	It("is readable only with permission to create Media", func(ctx SpecContext) {
		var all rbacv1.ClusterRoleList
		Expect(admin.List(ctx, &all, client.MatchingLabels{"app.kubernetes.io/name": "herald"})).To(Succeed())
		reads := 0
		for i := range all.Items {
			role := &all.Items[i]
			verbs := sets.New[string]()
			for _, rule := range role.Rules {
				if slices.Contains(rule.APIGroups, v1alpha1.GroupVersion.Group) && (slices.Contains(rule.Resources, "media") || slices.Contains(rule.Resources, "*")) {
					verbs.Insert(rule.Verbs...)
				}
			}
			if slices.Contains(ofHerald, role.Name) || !verbs.HasAny("get", "list", "watch", "*") {
				continue
			}
			reads++
			Expect(verbs.HasAny("create", "*")).To(BeTrue(), "%s reads Media, and so decides what is published", role.Name)
		}
		Expect(reads).To(BeNumerically(">=", 2), "editors and administrators of media")
	})
})
