// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// condition returns the reason of a condition in the object's status; empty if it is absent.
func condition(ctx context.Context, object client.Object, in *[]metav1.Condition, kind string) func() (string, error) {
	return func() (string, error) {
		err := k8s.Get(ctx, client.ObjectKeyFromObject(object), object)
		if found := meta.FindStatusCondition(*in, kind); found != nil {
			return found.Reason, err
		}
		return "", err
	}
}

// online reports whether a post is published on all its targets.
func online(ctx context.Context, post *v1alpha1.Post) func(g Gomega) bool {
	return func(g Gomega) bool {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(post), post)).To(Succeed())
		return meta.IsStatusConditionTrue(post.Status.Conditions, v1alpha1.ConditionPublished)
	}
}

// gone reports whether an object has been deleted.
func gone(ctx context.Context, object client.Object) func() (bool, error) {
	return func() (bool, error) {
		err := k8s.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
}

func finalizers(ctx context.Context, object client.Object) func() ([]string, error) {
	return func() ([]string, error) {
		err := k8s.Get(ctx, client.ObjectKeyFromObject(object), object)
		return object.GetFinalizers(), err
	}
}

// namespacesWith returns the namespaces with an event for this reason, written while they were terminating.
func namespacesWith(ctx context.Context, reason string) func() ([]string, error) {
	return func() (found []string, err error) {
		var events corev1.EventList
		err = k8s.List(ctx, &events, client.InNamespace(metav1.NamespaceDefault))
		for i := range events.Items {
			if about := events.Items[i].InvolvedObject; events.Items[i].Reason == reason && about.Kind == "Namespace" {
				found = append(found, about.Name)
			}
		}
		return found, err
	}
}

// changeTeam patches the spec of the trial's team.
func changeTeam(ctx context.Context, spec map[string]any) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"spec": spec})
	Expect(err).NotTo(HaveOccurred())
	team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	Expect(k8s.Patch(ctx, team, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// scale sets the number of replicas of a release's Deployment, and waits until they are ready and all others have
// exited.
func scale(ctx context.Context, component string, replicas int32) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"replicas": replicas}})
	Expect(err).NotTo(HaveOccurred())
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: release + "-" + component}}
	Expect(k8s.Patch(ctx, d, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
	rolledOut(ctx, d.Name)
	Eventually(func(g Gomega) {
		var list corev1.PodList
		g.Expect(k8s.List(ctx, &list, client.InNamespace(home), client.MatchingLabels(d.Spec.Selector.MatchLabels))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(int(replicas)))
	}).WithContext(ctx).Should(Succeed())
}

// kubectl runs kubectl like a user.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return command(ctx, repository, filepath.Join(repository, "bin", "kubectl"), args...)
}

// manifest writes a post to a file, as stored in Git.
func manifest(post *v1alpha1.Post) (file string) {
	GinkgoHelper()
	content, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Post",
		"metadata": map[string]any{"namespace": post.Namespace, "name": post.Name}, "spec": post.Spec,
	})
	Expect(err).NotTo(HaveOccurred())
	file = filepath.Join(GinkgoT().TempDir(), "post.json")
	Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
	return file
}
