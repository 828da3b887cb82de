// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
)

const (
	// atOnce limits how many objects are released concurrently.
	atOnce = 16
	// tries limits the attempts for one object after conflicts.
	tries = 10
	// checkEvery is the number of objects between two checks for an active manager: as many as are released in a second
	// by default.
	checkEvery = 200
	// fieldOwner is the field manager of the writes.
	fieldOwner = "herald-release"
)

// releaseKind lists the objects of a kind page by page and releases them. It returns the number of objects with a
// finalizer and the errors of individual objects; err is an error from listing them.
func (r *run) releaseKind(ctx context.Context, k kind) (found int, failed []error, err error) {
	namespaces := r.Namespaces.Scopes()
	if k.everywhere {
		namespaces = []string{metav1.NamespaceAll}
	}
	wanted, err := r.nameFilter(ctx, k)
	if err != nil {
		return 0, nil, err
	}
	for _, namespace := range namespaces {
		here, problems, err := r.releaseIn(ctx, k, namespace, wanted)
		for apierrors.IsResourceExpired(err) {
			// Listing took so long that etcd no longer has the revision, so start over. This skips objects already released.
			here, problems, err = r.releaseIn(ctx, k, namespace, wanted)
		}
		// If the CRDs are gone, the objects are gone too.
		if client.IgnoreNotFound(err) != nil {
			return 0, nil, err
		}
		found += here
		failed = append(failed, problems...)
	}
	return found, failed, nil
}

func (r *run) releaseIn(ctx context.Context, k kind, namespace string, wanted func(name string) bool) (found int, failed []error, err error) {
	objects := r.metadata.Resource(v1alpha1.GroupVersion.WithResource(k.resource)).Namespace(namespace)
	err = kubeclient.EachPage(ctx, func(paged context.Context, of kubeclient.Page) (string, error) {
		page, err := objects.List(paged, metav1.ListOptions{Limit: of.Limit, Continue: of.Continue})
		if err != nil {
			return "", fmt.Errorf("cannot list %s; check whether the Kubernetes API responds and whether this account may list them, then run this again: %w", k.resource, err)
		}
		held := withFinalizer(page.Items, wanted)
		found += len(held)
		// The requests use ctx, because the page's context counts the size of responses.
		for part := range slices.Chunk(held, checkEvery) {
			if err := r.checkStopped(ctx); err != nil {
				return "", err
			}
			failed = append(failed, r.releaseAll(ctx, k, part)...)
		}
		return page.Continue, ctx.Err()
	})
	return found, failed, err
}

// nameFilter returns a filter for the objects of a kind that belong to the selected namespaces. For a Team, that is the
// namespace in its spec.
func (r *run) nameFilter(ctx context.Context, k kind) (func(name string) bool, error) {
	if !k.everywhere || len(r.Namespaces) == 0 {
		return func(string) bool { return true }, nil
	}
	ours := map[string]bool{}
	err := r.eachTeam(ctx, func(team *unstructured.Unstructured, namespace string) {
		ours[team.GetName()] = r.Namespaces.Include(namespace)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list %s to see which belong to the namespaces; run this again: %w", k.resource, err)
	}
	return func(name string) bool { return ours[name] }, nil
}

// eachTeam calls f for each Team and its namespace. If the CRDs are gone, there are no Teams.
func (r *run) eachTeam(ctx context.Context, f func(team *unstructured.Unstructured, namespace string)) error {
	objects := r.dynamic.Resource(v1alpha1.GroupVersion.WithResource(teams))
	return client.IgnoreNotFound(kubeclient.EachPage(ctx, func(ctx context.Context, of kubeclient.Page) (string, error) {
		page, err := objects.List(ctx, metav1.ListOptions{Limit: of.Limit, Continue: of.Continue})
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			namespace, _, _ := unstructured.NestedString(page.Items[i].Object, "spec", "namespace")
			f(&page.Items[i], namespace)
		}
		return page.GetContinue(), nil
	}))
}

func withFinalizer(items []metav1.PartialObjectMetadata, wanted func(name string) bool) (held []*metav1.PartialObjectMetadata) {
	for i := range items {
		if ours, _ := split(items[i].Finalizers); len(ours) > 0 && wanted(items[i].Name) {
			held = append(held, &items[i])
		}
	}
	return held
}

func (r *run) releaseAll(ctx context.Context, k kind, held []*metav1.PartialObjectMetadata) (failed []error) {
	if r.DryRun {
		return r.reportAll(ctx, k, held)
	}
	var (
		group errgroup.Group
		mu    sync.Mutex
	)
	group.SetLimit(atOnce)
	for _, m := range held {
		group.Go(func() error {
			err := r.removeFinalizers(ctx, k, m)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, fmt.Errorf("cannot remove the finalizer from %s %s: %w", k.name, nameOf(m), err))
			} else {
				r.released[k.resource]++
			}
			return nil
		})
	}
	_ = group.Wait() // every error is in failed
	if len(held) > 0 {
		if _, err := fmt.Fprintf(r.Out, "%s: %d so far\n", k.resource, r.released[k.resource]); err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

func (r *run) reportAll(ctx context.Context, k kind, held []*metav1.PartialObjectMetadata) (failed []error) {
	for _, m := range held {
		ours, _ := split(m.Finalizers)
		does := "would remove"
		switch err := r.checkRecorded(ctx, k, m); {
		case errors.As(err, new(*unrecorded)):
			does = "would not yet remove"
		case err != nil:
			failed = append(failed, fmt.Errorf("cannot determine the change to %s %s: %w", k.name, nameOf(m), err))
			continue
		}
		if _, err := fmt.Fprintf(r.Out, "%s %s from %s %s\n", does, strings.Join(ours, " and "), k.name, nameOf(m)); err != nil {
			return append(failed, err)
		}
	}
	return failed
}

// removeFinalizers removes Herald's finalizers from an object. After a conflict, it reads the object again. It succeeds
// if the object is gone.
func (r *run) removeFinalizers(ctx context.Context, k kind, m *metav1.PartialObjectMetadata) error {
	objects := r.metadata.Resource(v1alpha1.GroupVersion.WithResource(k.resource)).Namespace(m.Namespace)
	var conflict error
	for range tries {
		ours, others := split(m.Finalizers)
		if len(ours) == 0 {
			return nil
		}
		if err := r.checkRecorded(ctx, k, m); err != nil {
			return err
		}
		change, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": m.UID, "resourceVersion": m.ResourceVersion, "finalizers": others}})
		if err != nil {
			return err
		}
		_, conflict = objects.Patch(ctx, m.Name, types.MergePatchType, change, metav1.PatchOptions{FieldManager: fieldOwner})
		if conflict == nil {
			r.recordGone(k, m)
		}
		if !apierrors.IsConflict(conflict) {
			return client.IgnoreNotFound(conflict)
		}
		if m, err = objects.Get(ctx, m.Name, metav1.GetOptions{}); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return fmt.Errorf("it keeps changing: %w", conflict)
}

// nameOf returns NAMESPACE/NAME, or only the name of a cluster-scoped object.
func nameOf(m *metav1.PartialObjectMetadata) string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}
