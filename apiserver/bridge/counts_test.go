// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/quota"
)

// counts is the real count on ConfigMaps in memory. For books of the kind full
// there is nothing left, and down is what taking fails with. Nothing is ever
// missing when a request looks first: another request takes the last one between.
type counts struct {
	*quota.Store

	maps *configMaps
	full string
	down error
	// taking, if set, is called at each take.
	taking func()
}

func newCounts() *counts {
	maps := &configMaps{stored: map[string]*corev1.ConfigMap{}}
	return &counts{Store: quota.NewStore(maps, "", clocktesting.NewFakePassiveClock(now)), maps: maps}
}

func (c *counts) Check(context.Context, quota.Counter, *quota.Reservation, quota.Limit) (quota.Answer, error) {
	return quota.Answer{}, nil
}

func (c *counts) Take(ctx context.Context, b quota.Counter, w *quota.Reservation, limit quota.Limit) (quota.Answer, error) {
	if c.taking != nil {
		c.taking()
	}
	if b.Kind == c.full {
		limit.Most = 0
	}
	if c.down != nil {
		return quota.Answer{}, c.down
	}
	return c.Store.Take(ctx, b, w, limit)
}

// held is what the posts have taken of a book: so much per target.
func (c *counts) held(t *testing.T, b quota.Counter) map[int]int {
	t.Helper()
	page, err := c.Entries(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	var held map[int]int
	for _, entry := range page {
		for _, item := range entry.Items {
			if held == nil {
				held = map[int]int{}
			}
			held[item.Target] += item.Count
		}
	}
	return held
}

// configMaps are those of one namespace, under optimistic concurrency.
type configMaps struct {
	typedcorev1.ConfigMapInterface

	mu      sync.Mutex
	stored  map[string]*corev1.ConfigMap
	version int
}

var configMapsResource = schema.GroupResource{Resource: "configmaps"}

func (c *configMaps) ConfigMaps(string) typedcorev1.ConfigMapInterface { return c }

func (c *configMaps) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.ConfigMap, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.stored[name]; ok && ctx.Err() == nil {
		return found.DeepCopy(), nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, apierrors.NewNotFound(configMapsResource, name)
}

func (c *configMaps) Create(_ context.Context, m *corev1.ConfigMap, _ metav1.CreateOptions) (*corev1.ConfigMap, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.stored[m.Name]; ok {
		return nil, apierrors.NewAlreadyExists(configMapsResource, m.Name)
	}
	return c.put(m), nil
}

func (c *configMaps) Update(_ context.Context, m *corev1.ConfigMap, _ metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.stored[m.Name]; !ok || found.ResourceVersion != m.ResourceVersion {
		return nil, apierrors.NewConflict(configMapsResource, m.Name, nil)
	}
	return c.put(m), nil
}

func (c *configMaps) put(m *corev1.ConfigMap) *corev1.ConfigMap {
	c.version++
	stored := m.DeepCopy()
	stored.ResourceVersion = strconv.Itoa(c.version)
	c.stored[m.Name] = stored
	return stored
}
