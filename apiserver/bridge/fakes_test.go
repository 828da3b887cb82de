// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/usage"
)

var now = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

var (
	caller = bridge.Caller{Namespace: "team-a", Key: "k"}
	person = bridge.Caller{Namespace: "team-a", Author: "herald:link"}
)

// posts is a fake Kubernetes API with posts. Each create consumes the next of faults, if there is one.
type posts struct {
	stored  map[string]*v1alpha1.Post
	faults  []fault
	creates int
	// room, if set, is the number of posts that a ResourceQuota allows. It is checked before the name.
	room int
	// creating, if set, is called at each create; between, at each update.
	creating func()
	between  func(*posts)
	updates  int
	version  int
}

// fault describes how one create fails.
type fault struct {
	lands bool // it takes effect nevertheless
	err   error
}

func (p *posts) Create(_ context.Context, post *v1alpha1.Post) (*v1alpha1.Post, error) {
	p.creates++
	if p.creating != nil {
		p.creating()
	}
	if p.room > 0 && len(p.stored) >= p.room {
		return nil, exceeded("posts", p.room)
	}
	if _, ok := p.stored[post.Name]; ok {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "posts"}, post.Name)
	}
	var f fault
	if len(p.faults) > 0 {
		f, p.faults = p.faults[0], p.faults[1:]
	}
	if f.err == nil || f.lands {
		stored := post.DeepCopy()
		stored.ResourceVersion, stored.Generation = "5", 1
		stored.CreationTimestamp = metav1.NewTime(now)
		p.stored[post.Name] = stored
	}
	return p.stored[post.Name], f.err
}

// exceeded returns Kubernetes' error for an object beyond a team's ResourceQuota.
func exceeded(kind string, room int) error {
	name := "count/" + kind + ".social.herald.dev"
	return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "x", fmt.Errorf(
		"exceeded quota: %s, requested: %s=1, used: %s=%d, limited: %s=%d", v1alpha1.BudgetQuota, name, name, room, name, room))
}

func (p *posts) Get(_ context.Context, _, name string) (*v1alpha1.Post, error) {
	if post, ok := p.stored[name]; ok {
		return post, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "posts"}, name)
}

// Update also consumes the next of faults. Before that, it calls between, which simulates a concurrent change after the
// caller's read.
func (p *posts) Update(_ context.Context, before, after *v1alpha1.Post) (*v1alpha1.Post, error) {
	p.updates++
	if p.between != nil {
		p.between(p)
	}
	var f fault
	if len(p.faults) > 0 {
		f, p.faults = p.faults[0], p.faults[1:]
	}
	if f.err != nil && !f.lands {
		return nil, f.err
	}
	if stored := p.stored[before.Name]; stored == nil || stored.ResourceVersion != before.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "posts"}, before.Name, nil)
	}
	p.put(after)
	return after.DeepCopy(), f.err
}

// put stores a post as the Kubernetes API does: with a new resourceVersion, and a new generation if its spec has
// changed.
func (p *posts) put(post *v1alpha1.Post) {
	p.version++
	if stored := p.stored[post.Name]; stored != nil && !v1alpha1.SemanticEqual(stored.Spec, post.Spec) {
		post.Generation++
	}
	post.ResourceVersion = strconv.Itoa(100 + p.version)
	p.stored[post.Name] = post.DeepCopy()
}

// connections are the connections in every namespace; live contains those that are missing from the cache.
type connections struct {
	memory, live map[string]*v1alpha1.Connection
	err          error
}

func (c *connections) Get(_, name string) *v1alpha1.Connection { return c.memory[name] }

func (c *connections) List(string) []*v1alpha1.Connection { return nil }

func (c *connections) Live(_ context.Context, _, name string) (*v1alpha1.Connection, error) {
	if c.err != nil {
		return nil, c.err
	}
	if connection, ok := c.live[name]; ok {
		return connection, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "connections"}, name)
}

// events records the written events as "reason kind/name: note".
type events struct {
	written []string
	err     error
}

func (e *events) Write(_ context.Context, about *corev1.ObjectReference, reason, note string) error {
	e.written = append(e.written, fmt.Sprintf("%s %s/%s: %s", reason, about.Kind, about.Name, note))
	return e.err
}

type ready struct{}

func (ready) Check(context.Context, *v1alpha1.Connection) readiness.Result {
	return readiness.Result{State: readiness.Ready}
}

type owner struct{}

func (owner) Owner(string) *v1alpha1.Team {
	return &v1alpha1.Team{
		ObjectMeta: metav1.ObjectMeta{Name: "acme"},
		Spec:       v1alpha1.TeamSpec{Subscription: v1alpha1.Subscription{State: v1alpha1.SubscriptionActive}},
	}
}

func onX(name string) *v1alpha1.Connection {
	return &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: name},
		Spec:       v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX},
	}
}

func service(p *posts, c *connections) *bridge.Service {
	return bridge.New(bridge.Config{
		Used: func(*v1alpha1.APIKey) {}, Owner: owner{}.Owner, Connections: c, Posts: p, Readiness: ready{}.Check, Index: postindex.New(),
		Events: &events{},
		Capabilities: func(v1alpha1.Platform) (platforms.Capabilities, bool) {
			return platforms.Capabilities{Categories: []v1alpha1.Category{v1alpha1.CategoryText}}, true
		},
		Clock: clocktesting.NewFakePassiveClock(now), Log: slog.New(slog.DiscardHandler),
	})
}

func inMemory(name string) *connections {
	return &connections{memory: map[string]*v1alpha1.Connection{name: onX(name)}}
}

// pageOf lists posts, which cannot fail without an archive.
func pageOf(t *testing.T, s *bridge.Service, caller bridge.Caller, q postindex.Query) bridge.PostPage {
	t.Helper()
	page, err := s.ListPosts(t.Context(), caller, q)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// counts is the real usage store with Usages in memory. The resource full has no room left. Usage operations fail with
// down; if afterwards is set, they fail only starting with the second write. The first check of a request always
// succeeds, as if another request then used up the rest.
type counts struct {
	*quota.UsageStore

	full       string
	down       error
	afterwards bool
	amends     int
	// taking, if set, is called on every write.
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

// usageByTarget returns the posts' usage, by target.
func (c *counts) usageByTarget(t *testing.T, counter v1alpha1.UsageSpec) map[int]int {
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
