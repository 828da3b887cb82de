// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package deletions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/managertest"
	"github.com/herald-social/herald/test/suite"
)

// Kubernetes' quota controller discovers new kinds every 30 seconds, and after five minutes recalculates a quota that
// it could not count. Until then Kubernetes rejects uncounted objects.
var _ = Describe("A cluster with a new Herald installation", func() {
	It("accepts a team and all its objects together, before Kubernetes' own quota resync", func(ctx SpecContext) {
		fresh := suite.Must(envtest.Start(envtest.Empty(), envtest.ControllerManager()))
		DeferCleanup(fresh.Stop)
		By("waiting until the quota controller is running, without Herald's kinds")
		const configMaps = corev1.ResourceName("count/configmaps")
		theirs := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "theirs"}}
		theirs.Spec.Hard = corev1.ResourceList{configMaps: resource.MustParse("100")}
		Expect(fresh.Client.Create(ctx, theirs)).To(Succeed())
		Eventually(func() (corev1.ResourceList, error) {
			err := fresh.Client.Get(ctx, client.ObjectKeyFromObject(theirs), theirs)
			return theirs.Status.Used, err
		}).Should(HaveKey(configMaps))

		Expect(fresh.InstallKinds()).To(Succeed())
		Expect(cluster.ApplyFolders(ctx, fresh.Client, filepath.Join(envtest.Root(), "config", "rbac"))).To(Succeed())
		// A bucket belongs to one cluster, so this cluster has none.
		here := managertest.Installation{Env: fresh, Program: installation.Program, SandboxURL: installation.SandboxURL}
		here.Manager(GinkgoT(), here.Config(GinkgoT()))

		By("applying the team, whose budget Kubernetes cannot count yet")
		Expect(applied(ctx, fresh.Client, "00-team.yaml")).To(Succeed())
		bounds := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team-studio", Name: v1alpha1.BudgetQuota}}
		Eventually(func() (corev1.ResourceList, error) {
			err := fresh.Client.Get(ctx, client.ObjectKeyFromObject(bounds), bounds)
			return bounds.Status.Hard, client.IgnoreNotFound(err)
		}).ShouldNot(BeEmpty())
		// Kubernetes has not counted the kinds for some seconds, until the manager's check.
		wasUncounted := slices.ContainsFunc(slices.Collect(maps.Keys(bounds.Status.Hard)), func(kind corev1.ResourceName) bool {
			_, isCounted := bounds.Status.Used[kind]
			return !isCounted
		})

		By("applying everything, like a tool that retries rejected objects")
		first := applied(ctx, fresh.Client, "*.yaml")
		AddReportEntry("refused at first", fmt.Sprint(first))
		Eventually(applied).WithArguments(ctx, fresh.Client, "*.yaml").WithTimeout(2*time.Minute).WithPolling(time.Second).
			Should(Succeed(), "Kubernetes' own next count is five minutes away")

		wanted := []any{}
		for name := range bounds.Spec.Hard {
			wanted = append(wanted, name)
		}
		Eventually(func(g Gomega) {
			g.Expect(fresh.Client.Get(ctx, client.ObjectKeyFromObject(bounds), bounds)).To(Succeed())
			for _, counts := range []corev1.ResourceList{bounds.Spec.Hard, bounds.Status.Hard, bounds.Status.Used} {
				g.Expect(slices.Collect(maps.Keys(counts))).To(ConsistOf(wanted...), "Kubernetes enforces the previous budget")
			}
		}).Should(Succeed())
		if !wasUncounted {
			Skip("Kubernetes learned of Herald's kinds before it saw the budget, and counted at once, so that nothing had to ask it to: run the test again")
		}
	})
})

// applied applies files of config/samples/set and returns the rejections.
func applied(ctx context.Context, c client.Client, names string) error {
	GinkgoHelper()
	var refused []error
	for _, object := range theSet(names) {
		text := suite.Must(json.Marshal(object))
		if err := c.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("tool")); err != nil {
			refused = append(refused, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err))
		}
	}
	return errors.Join(refused...)
}

// theSet returns the objects in files of config/samples/set, in order.
func theSet(names string) (objects []*unstructured.Unstructured) {
	GinkgoHelper()
	files := suite.Must(filepath.Glob(filepath.Join(envtest.Root(), "config", "samples", "set", names)))
	for _, file := range files {
		text := suite.Must(os.ReadFile(file))
		parsed := suite.Must(cluster.ParseObjects(text))
		objects = append(objects, parsed...)
	}
	Expect(objects).NotTo(BeEmpty())
	return objects
}
