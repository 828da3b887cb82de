// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// item is a cluster object.
type item struct{ resource, namespace, name string }

func (i item) String() string { return i.resource + " " + i.namespace + "/" + i.name }

// inventory contains every object in the cluster, by UID.
type inventory map[types.UID]item

// listInventory lists the objects of every listable kind.
func listInventory(ctx context.Context) inventory {
	GinkgoHelper()
	lists, err := resource.ServerPreferredResources()
	Expect(err).NotTo(HaveOccurred())
	reader, err := metadata.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	out := inventory{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		Expect(err).NotTo(HaveOccurred())
		for _, kind := range list.APIResources {
			objects, err := reader.Resource(version.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				// This is a CRD that was just deleted, or a resource that the API server does not serve to this user.
				continue
			}
			for i := range objects.Items {
				found := &objects.Items[i]
				out[found.UID] = item{schema.GroupResource{Group: version.Group, Resource: kind.Name}.String(), found.Namespace, found.Name}
			}
		}
	}
	return out
}

func (i inventory) without(other inventory) inventory {
	out := inventory{}
	for uid, found := range i {
		if _, ok := other[uid]; !ok {
			out[uid] = found
		}
	}
	return out
}

// withoutKept returns the inventory without the objects kept by Helm and the IPAddresses of their Services.
func (i inventory) withoutKept(ctx context.Context) inventory {
	GinkgoHelper()
	ours := func(name string) bool {
		return strings.HasPrefix(name, release+"-sandbox") || strings.HasPrefix(name, release+"-store")
	}
	var services corev1.ServiceList
	Expect(k8s.List(ctx, &services, client.InNamespace(home))).To(Succeed())
	addresses := map[string]bool{}
	for j := range services.Items {
		if ours(services.Items[j].Name) {
			addresses[services.Items[j].Spec.ClusterIP] = true
		}
	}
	out := inventory{}
	for uid, found := range i {
		if !ours(found.name) && (found.resource != "ipaddresses.networking.k8s.io" || !addresses[found.name]) {
			out[uid] = found
		}
	}
	return out
}

// remaining returns the objects other than CRDs, data and the cluster's own objects.
func (i inventory) remaining() (out []string) {
	for _, found := range i {
		_, group, _ := strings.Cut(found.resource, ".")
		switch {
		case group == v1alpha1.GroupVersion.Group:
		// The CRDs, and the API server's objects for them.
		case found.resource == "customresourcedefinitions.apiextensions.k8s.io" && strings.HasSuffix(found.name, "."+v1alpha1.GroupVersion.Group):
		case found.resource == "apiservices.apiregistration.k8s.io" && strings.HasSuffix(found.name, "."+v1alpha1.GroupVersion.Group):
		case found.resource == "namespaces" && found.name == demo, found.namespace == clients:
		case found.namespace == demo && found.resource == "secrets":
		// The count in this lease shows the next installation that the cluster was not rolled back.
		case found.resource == "leases.coordination.k8s.io" && found.name == release+"-clock":
		// The RoleBinding for the team's pages was applied with the team and is not part of the release.
		case found.namespace == demo && found.resource == "rolebindings.rbac.authorization.k8s.io" && found.name == "herald-link":
		case found.name == "kube-root-ca.crt", found.resource == "serviceaccounts" && found.name == "default":
		case found.resource == "events", group == "events.k8s.io", group == "metrics.k8s.io":
		case found.namespace == "kube-system", found.namespace == "kube-node-lease", found.resource == "componentstatuses":
		default:
			out = append(out, found.String())
		}
	}
	slices.Sort(out)
	return out
}

// deleteData deletes teams with their namespaces. Without a manager, it removes the finalizers itself.
func deleteData(ctx context.Context) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(k8s.DeleteAllOf(ctx, &v1alpha1.Team{}))).To(Or(Succeed(), MatchError(ContainSubstring("no matches"))))
	for _, list := range []client.ObjectList{
		&v1alpha1.PostList{}, &v1alpha1.MediaList{}, &v1alpha1.ConnectionList{}, &v1alpha1.APIKeyList{}, &v1alpha1.TeamList{},
	} {
		found, err := unstructuredOf(ctx, list)
		if err != nil {
			continue // the CRDs were never installed
		}
		for i := range found {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			Expect(client.IgnoreNotFound(k8s.Patch(ctx, &found[i], patch))).To(Succeed())
		}
	}
	for _, namespace := range []string{demo, outlet} {
		deleteNamespace(ctx, namespace)
	}
}

// unstructuredOf lists all objects of a list kind.
func unstructuredOf(ctx context.Context, list client.ObjectList) ([]unstructured.Unstructured, error) {
	kinds, _, err := k8s.Scheme().ObjectKinds(list)
	if err != nil {
		return nil, err
	}
	out := &unstructured.UnstructuredList{}
	out.SetGroupVersionKind(kinds[0])
	if err := k8s.List(ctx, out); err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", kinds[0].Kind, err)
	}
	return out.Items, nil
}

// deleteDefinitions deletes Herald's CRDs.
func deleteDefinitions(ctx context.Context) {
	GinkgoHelper()
	Expect(apiextensionsv1.AddToScheme(k8s.Scheme())).To(Succeed())
	var definitions apiextensionsv1.CustomResourceDefinitionList
	Expect(k8s.List(ctx, &definitions)).To(Succeed())
	for i := range definitions.Items {
		if definitions.Items[i].Spec.Group == v1alpha1.GroupVersion.Group {
			Expect(client.IgnoreNotFound(k8s.Delete(ctx, &definitions.Items[i]))).To(Succeed())
			Eventually(func() bool {
				return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(&definitions.Items[i]), &apiextensionsv1.CustomResourceDefinition{}))
			}).WithContext(ctx).Should(BeTrue(), "definition %s is deleted", definitions.Items[i].Name)
		}
	}
}
