// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
)

// watched caches all resources of one kind, without managed fields and with only Herald's part of large metadata.
// Cached objects are shared and must not be modified.
type watched[T any, P object[T]] struct {
	kind[T, P]

	informers []informer
}

type informer struct {
	cache.SharedIndexInformer
	*contact

	namespace string
}

// isLost reports whether the Kubernetes API refuses the watch of a single namespace, because the namespace or its Role
// was deleted. Its cache is then outdated, and the other namespaces are served without it.
func (i informer) isLost() bool { return i.namespace != metav1.NamespaceAll && i.denied.Load() }

// hasSynced reports whether the cache is complete. A lost namespace does not delay the start.
func (i informer) hasSynced() bool { return i.HasSynced() || i.isLost() }

func watch[T any, P object[T]](client rest.Interface, resource string, served configv1alpha1.Namespaces, indexers cache.Indexers,
	clock clock.PassiveClock,
) watched[T, P] {
	w := watched[T, P]{kind: kind[T, P]{client, resource}}
	for _, namespace := range served.Scopes() {
		contact := &contact{clock: clock}
		source := contact.observe(cache.NewListWatchFromClient(client, resource, namespace, fields.Everything()))
		shared := cache.NewSharedIndexInformer(source, P(new(T)), 0, indexers)
		_ = shared.SetTransform(kubeclient.TransformForCache) // fails only after the informer has started
		w.informers = append(w.informers, informer{shared, contact, namespace})
	}
	return w
}

func (w watched[T, P]) RunWithContext(ctx context.Context) { runAll(ctx, w.informers) }

func (w watched[T, P]) HasSynced() bool {
	for _, i := range w.informers {
		if !i.hasSynced() {
			return false
		}
	}
	return true
}

// Handle adds an event handler. Call it before the watch runs.
func (w watched[T, P]) Handle(handler cache.ResourceEventHandler) {
	for _, i := range w.informers {
		_, _ = i.AddEventHandler(handler) // fails only after the informer has stopped
	}
}

// LastContact returns when the cache was last known to be complete, or zero if it never was. Lost namespaces do not
// count, because their cache is not read.
func (w watched[T, P]) LastContact() (oldest time.Time) {
	for _, i := range w.present() {
		if at := i.LastContact(); oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// present returns the informers whose namespaces are not lost.
func (w watched[T, P]) present() []informer {
	if !slices.ContainsFunc(w.informers, informer.isLost) {
		return w.informers
	}
	return slices.DeleteFunc(slices.Clone(w.informers), informer.isLost)
}

// ByIndex returns the resources with the given index value, in no particular order.
func (w watched[T, P]) ByIndex(index, value string) ([]any, error) {
	present := w.present()
	if len(present) == 1 {
		return present[0].GetIndexer().ByIndex(index, value)
	}
	var all []any
	for _, i := range present {
		found, err := i.GetIndexer().ByIndex(index, value)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (w watched[T, P]) by(index, value string) []P {
	found, _ := w.ByIndex(index, value) // the index exists
	return typed[T, P](found)
}

// all returns every cached resource, in no particular order.
func (w watched[T, P]) all() []P {
	var all []P
	for _, i := range w.present() {
		all = append(all, typed[T, P](i.GetIndexer().List())...)
	}
	return all
}

func (w watched[T, P]) cached(namespace, name string) P {
	key := cache.NewObjectName(namespace, name).String()
	for _, i := range w.present() {
		if obj, _, _ := i.GetIndexer().GetByKey(key); obj != nil { // never fails
			of, _ := obj.(P)
			return of
		}
	}
	return nil
}

func typed[T any, P object[T]](found []any) []P {
	out := make([]P, 0, len(found))
	for _, obj := range found {
		if of, ok := obj.(P); ok {
			out = append(out, of)
		}
	}
	return out
}
