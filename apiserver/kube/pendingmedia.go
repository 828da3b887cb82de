// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/plan"
)

// awaited selects the Media that are waiting for their files, including those without a phase.
var awaited = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(v1alpha1.MediaUploaded)),
	fields.OneTermNotEqualSelector("status.phase", string(v1alpha1.MediaRejected)),
	fields.OneTermNotEqualSelector("status.phase", string(v1alpha1.MediaExpired)),
)

// PendingMedia watches the Media that are waiting for their files. It caches only names and sizes.
type PendingMedia struct {
	reflectors reflectors

	mu sync.Mutex
	// sizes holds the file sizes, by namespace and name.
	sizes   map[string]map[string]int64
	sums    map[string]int64
	changed map[string]struct{}
}

// NewPendingMedia returns a watch of the served namespaces.
func NewPendingMedia(client rest.Interface, served configv1alpha1.Namespaces) *PendingMedia {
	p := &PendingMedia{sizes: map[string]map[string]int64{}, sums: map[string]int64{}, changed: map[string]struct{}{}}
	p.reflectors = newReflectors(served, func(namespace string, listed func()) *cache.Reflector {
		source := cache.NewFilteredListWatchFromClient(client, "media", namespace, func(o *metav1.ListOptions) {
			o.FieldSelector = awaited.String()
		})
		store := &pendingStore{p, namespace, listed}
		return cache.NewReflectorWithOptions(onForbidden(namespace, listed, source), &v1alpha1.Media{}, store, cache.ReflectorOptions{Name: "pending media"})
	})
	return p
}

// Run watches until the context is done.
func (p *PendingMedia) Run(ctx context.Context) { p.reflectors.run(ctx) }

// Synced is closed after the initial list.
func (p *PendingMedia) Synced() <-chan struct{} { return p.reflectors.synced }

// Pending returns how many files in a namespace are waiting to be uploaded and their total size in bytes, and which of
// the named Media are among them.
func (p *PendingMedia) Pending(namespace string, names []string) (files, bytes int64, known []bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.sizes[namespace]
	known = make([]bool, len(names))
	for i, name := range names {
		_, known[i] = of[name]
	}
	return int64(len(of)), p.sums[namespace], known
}

// Changed returns the namespaces that changed since the last call.
func (p *PendingMedia) Changed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]string, 0, len(p.changed))
	for namespace := range p.changed {
		out = append(out, namespace)
	}
	clear(p.changed)
	return out
}

// upsert adds or updates a Media. The caller holds the lock.
func (p *PendingMedia) upsert(m *v1alpha1.Media) {
	size := plan.FileBytes(&m.Spec)
	of := p.sizes[m.Namespace]
	if of == nil {
		of = map[string]int64{}
		p.sizes[strings.Clone(m.Namespace)] = of
	}
	before, known := of[m.Name]
	if known && before == size {
		return
	}
	of[strings.Clone(m.Name)] = size
	p.sums[m.Namespace] += size - before
	p.changed[m.Namespace] = struct{}{}
}

// pendingStore receives a reflector's objects, from one namespace or from all.
type pendingStore struct {
	pending   *PendingMedia
	namespace string
	// listed is called after each list.
	listed func()
}

var _ cache.ReflectorStore = &pendingStore{}

func (s *pendingStore) Add(obj any) error { return s.Update(obj) }

func (s *pendingStore) Update(obj any) error {
	if m, ok := obj.(*v1alpha1.Media); ok {
		s.pending.mu.Lock()
		defer s.pending.mu.Unlock()
		s.pending.upsert(m)
	}
	return nil
}

// Delete removes a Media that was deleted or is no longer waiting for its file.
func (s *pendingStore) Delete(obj any) error {
	m, ok := obj.(*v1alpha1.Media)
	if !ok {
		return nil
	}
	p := s.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	size, known := p.sizes[m.Namespace][m.Name]
	if !known {
		return nil
	}
	delete(p.sizes[m.Namespace], m.Name)
	p.sums[m.Namespace] -= size
	if len(p.sizes[m.Namespace]) == 0 {
		delete(p.sizes, m.Namespace)
		delete(p.sums, m.Namespace)
	}
	p.changed[m.Namespace] = struct{}{}
	return nil
}

func (s *pendingStore) Replace(objs []any, _ string) error {
	p := s.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	for namespace := range p.sizes {
		if s.namespace != metav1.NamespaceAll && s.namespace != namespace {
			continue
		}
		p.changed[namespace] = struct{}{}
		delete(p.sizes, namespace)
		delete(p.sums, namespace)
	}
	for _, obj := range objs {
		if m, ok := obj.(*v1alpha1.Media); ok {
			p.upsert(m)
		}
	}
	s.listed()
	return nil
}

func (*pendingStore) Resync() error { return nil }
