// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting/usage"
)

// counts is the real usage store with Usages in memory. The resource full has no room left. Usage operations fail with
// down; if afterwards is set, they fail only from the second write on. The first check of a request always succeeds, as
// if another request used up the rest in between.
type counts struct {
	*quota.UsageStore

	full       string
	down       error
	afterwards bool
	amends     int
	// taking, if set, is called at each write.
	taking func()
}

func newCounts() *counts {
	return &counts{UsageStore: quota.NewUsageStore(&usages{stored: map[string]*v1alpha1.Usage{}})}
}

func (c *counts) Read(_ context.Context, _ string, counter v1alpha1.UsageSpec) (*v1alpha1.Usage, error) {
	return &v1alpha1.Usage{Spec: counter}, nil
}

func (c *counts) Amend(ctx context.Context, namespace string, counter v1alpha1.UsageSpec, change func(*v1alpha1.Usage) error) error {
	if c.taking != nil {
		c.taking()
	}
	c.amends++
	if c.down != nil && (!c.afterwards || c.amends > 1) {
		return c.down
	}
	if counter.Resource == c.full {
		return change(fullUsage(counter))
	}
	return c.UsageStore.Amend(ctx, namespace, counter, change)
}

// fullUsage returns a Usage without room during the tests.
func fullUsage(counter v1alpha1.UsageSpec) *v1alpha1.Usage {
	u := &v1alpha1.Usage{Spec: counter}
	usage.Reserve(u, usage.Reservation{Post: "others", Uses: []usage.Use{{Count: 30, At: now}}}, 30, now)
	return u
}

// held returns the posts' usage, by target.
func (c *counts) held(t *testing.T, counter v1alpha1.UsageSpec) map[int]int {
	t.Helper()
	stored, err := c.UsageStore.Read(t.Context(), caller.Namespace, counter)
	if err != nil {
		t.Fatal(err)
	}
	var held map[int]int
	for _, entry := range stored.Status.Entries {
		if held == nil {
			held = map[int]int{}
		}
		held[int(entry.Target)] += int(entry.Count)
	}
	return held
}

// usages are the Usages of one namespace, with optimistic concurrency.
type usages struct {
	mu      sync.Mutex
	stored  map[string]*v1alpha1.Usage
	version int
}

var usagesResource = schema.GroupResource{Resource: "usages"}

func (u *usages) Get(ctx context.Context, _, name string) (*v1alpha1.Usage, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if found, ok := u.stored[name]; ok {
		return found.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(usagesResource, name)
}

func (u *usages) Create(_ context.Context, usage *v1alpha1.Usage) (*v1alpha1.Usage, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, ok := u.stored[usage.Name]; ok {
		return nil, apierrors.NewAlreadyExists(usagesResource, usage.Name)
	}
	created := usage.DeepCopy()
	created.Status = v1alpha1.UsageStatus{}
	return u.put(created), nil
}

func (u *usages) UpdateStatus(_ context.Context, usage *v1alpha1.Usage) (*v1alpha1.Usage, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if found, ok := u.stored[usage.Name]; !ok || found.ResourceVersion != usage.ResourceVersion {
		return nil, apierrors.NewConflict(usagesResource, usage.Name, nil)
	}
	return u.put(usage), nil
}

func (u *usages) put(usage *v1alpha1.Usage) *v1alpha1.Usage {
	u.version++
	stored := usage.DeepCopy()
	stored.ResourceVersion = strconv.Itoa(u.version)
	u.stored[usage.Name] = stored
	return stored.DeepCopy()
}
