// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	mediastore "github.com/herald-social/herald/internal/media/store"
)

// cluster is a fake Kubernetes API with the objects that the pages need.
type cluster struct {
	mu          sync.Mutex
	posts       map[string]*v1alpha1.Post
	keys        map[string]*v1alpha1.APIKey
	schedules   map[string]*v1alpha1.PostSchedule
	notifiers   map[string]*v1alpha1.Notifier
	secrets     []*corev1.Secret
	grants      map[string]*v1alpha1.OAuthGrant
	media       map[string]*v1alpha1.Media
	connections map[string][]*v1alpha1.Connection
	teams       []*v1alpha1.Team
	bindings    []rbacv1.RoleBinding
	versions    int
	// writes counts all writes.
	writes int
	// signals are the channels of the pages that follow a post, and followed counts them.
	signals  map[string]chan struct{}
	followed int
}

func missing(kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
}

// object is one of this API's types.
type object[T any] interface {
	metav1.Object
	DeepCopy() T
}

// stamp gives an object a new resourceVersion, and counts the write.
func (c *cluster) stamp(o metav1.Object) {
	c.versions++
	c.writes++
	o.SetResourceVersion(strconv.Itoa(c.versions))
	o.SetUID(types.UID(o.GetNamespace() + "-" + o.GetName()))
}

// read returns a copy of an object.
func read[T object[T]](c *cluster, from map[string]T, kind, namespace, name string) (found T, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := from[namespace+"/"+name]; ok {
		return o.DeepCopy(), nil
	}
	return found, missing(kind, name)
}

// within returns copies of the objects whose namespace begins with prefix, in order.
func within[T object[T]](c *cluster, from map[string]T, prefix string) (found []T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if strings.HasPrefix(name, prefix) {
			found = append(found, from[name].DeepCopy())
		}
	}
	return found
}

// write stores a copy of an object.
func write[T object[T]](c *cluster, into map[string]T, o T) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stored := o.DeepCopy()
	c.stamp(stored)
	into[stored.GetNamespace()+"/"+stored.GetName()] = stored
	return stored.DeepCopy(), nil
}

type postsOf struct{ *cluster }

func (c postsOf) Create(_ context.Context, post *v1alpha1.Post) (*v1alpha1.Post, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.posts[post.Namespace+"/"+post.Name]; ok {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "posts"}, post.Name)
	}
	stored := post.DeepCopy()
	stored.Generation, stored.CreationTimestamp = 1, metav1.NewTime(now)
	c.stamp(stored)
	c.posts[stored.Namespace+"/"+stored.Name] = stored
	return stored.DeepCopy(), nil
}

func (c postsOf) Get(_ context.Context, namespace, name string) (*v1alpha1.Post, error) {
	return read(c.cluster, c.posts, "posts", namespace, name)
}

func (c postsOf) Update(_ context.Context, before, after *v1alpha1.Post) (*v1alpha1.Post, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := after.Namespace + "/" + after.Name
	stored, ok := c.posts[key]
	if !ok {
		return nil, missing("posts", after.Name)
	}
	if stored.ResourceVersion != before.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "posts"}, after.Name, nil)
	}
	next := after.DeepCopy()
	if !v1alpha1.SemanticEqual(stored.Spec, next.Spec) {
		next.Generation++
	}
	c.stamp(next)
	c.posts[key] = next
	return next.DeepCopy(), nil
}

type keysOf struct{ *cluster }

func (c keysOf) List(_ context.Context, namespace string) (all []v1alpha1.APIKey, err error) {
	for _, key := range within(c.cluster, c.keys, namespace+"/") {
		all = append(all, *key)
	}
	return all, nil
}

func (c keysOf) Get(_ context.Context, namespace, name string) (*v1alpha1.APIKey, error) {
	return read(c.cluster, c.keys, "apikeys", namespace, name)
}

func (c keysOf) Create(_ context.Context, key *v1alpha1.APIKey) (*v1alpha1.APIKey, error) {
	return write(c.cluster, c.keys, key)
}

func (c keysOf) Update(ctx context.Context, _, after *v1alpha1.APIKey) (*v1alpha1.APIKey, error) {
	return c.Create(ctx, after)
}

type schedulesOf struct{ *cluster }

func (c schedulesOf) List(_ context.Context, namespace string) (all []v1alpha1.PostSchedule, err error) {
	for _, of := range within(c.cluster, c.schedules, namespace+"/") {
		all = append(all, *of)
	}
	return all, nil
}

func (c schedulesOf) Get(_ context.Context, namespace, name string) (*v1alpha1.PostSchedule, error) {
	return read(c.cluster, c.schedules, ofSchedules, namespace, name)
}

func (c schedulesOf) Create(ctx context.Context, of *v1alpha1.PostSchedule) (*v1alpha1.PostSchedule, error) {
	if _, err := c.Get(ctx, of.Namespace, of.Name); err == nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: ofSchedules}, of.Name)
	}
	of = of.DeepCopy()
	of.CreationTimestamp, of.Generation = metav1.NewTime(now), 1
	of.Spec.Template.OnUnknownOutcome = v1alpha1.OnUnknownFail
	return write(c.cluster, c.schedules, of)
}

func (c schedulesOf) Update(_ context.Context, _, after *v1alpha1.PostSchedule) (*v1alpha1.PostSchedule, error) {
	after = after.DeepCopy()
	after.Generation++
	return write(c.cluster, c.schedules, after)
}

func (c schedulesOf) Delete(_ context.Context, of *v1alpha1.PostSchedule) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	delete(c.schedules, of.Namespace+"/"+of.Name)
	return nil
}

// grantsOf implements oauth.Grants.
type grantsOf struct{ *cluster }

func (grantsOf) HasSynced() bool { return true }

func (c grantsOf) Get(namespace, name string) *v1alpha1.OAuthGrant {
	found, _ := read(c.cluster, c.grants, "oauthgrants", namespace, name)
	return found
}

func (c grantsOf) List(namespace string) []*v1alpha1.OAuthGrant {
	return within(c.cluster, c.grants, namespace)
}

func (c grantsOf) ListLive(_ context.Context, namespace string) (all []v1alpha1.OAuthGrant, err error) {
	for _, grant := range c.List(namespace) {
		all = append(all, *grant)
	}
	return all, nil
}

func (c grantsOf) Live(_ context.Context, namespace, name string) (*v1alpha1.OAuthGrant, error) {
	return read(c.cluster, c.grants, "oauthgrants", namespace, name)
}

func (c grantsOf) Create(_ context.Context, grant *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error) {
	return write(c.cluster, c.grants, grant)
}

func (c grantsOf) Update(ctx context.Context, _, after *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error) {
	return c.Create(ctx, after)
}

func (c grantsOf) UpdateStatus(ctx context.Context, grant *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error) {
	return c.Create(ctx, grant)
}

func (c grantsOf) Delete(_ context.Context, grant *v1alpha1.OAuthGrant) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	delete(c.grants, grant.Namespace+"/"+grant.Name)
	return nil
}

type mediaOf struct{ *cluster }

func (c mediaOf) Create(_ context.Context, media *v1alpha1.Media) (*v1alpha1.Media, error) {
	return write(c.cluster, c.media, media)
}

func (c mediaOf) Get(_ context.Context, namespace, name string) (*v1alpha1.Media, error) {
	return read(c.cluster, c.media, "media", namespace, name)
}

func (c mediaOf) UpdateStatus(_ context.Context, media *v1alpha1.Media) (*v1alpha1.Media, error) {
	return media, nil
}

func (c mediaOf) SetUploadDeadline(context.Context, string, string, time.Time) error { return nil }

// uploaded returns all of a team's files, regardless of their state.
func (c mediaOf) uploaded(_ context.Context, namespace string, most int) (files []v1alpha1.Media, more bool, err error) {
	for _, m := range c.media {
		if m.Namespace == namespace {
			files = append(files, *m.DeepCopy())
		}
	}
	return files[:min(len(files), most)], len(files) > most, nil
}

type bindingsOf struct{ *cluster }

func (c bindingsOf) List(_ context.Context, namespace string) (found []rbacv1.RoleBinding, more bool, err error) {
	for i := range c.bindings {
		if c.bindings[i].Namespace == namespace {
			found = append(found, c.bindings[i])
		}
	}
	return found, false, nil
}

type connectionsOf struct{ *cluster }

func (c connectionsOf) Get(namespace, name string) *v1alpha1.Connection {
	for _, connection := range c.connections[namespace] {
		if connection.Name == name {
			return connection
		}
	}
	return nil
}

func (c connectionsOf) List(namespace string) []*v1alpha1.Connection {
	return slices.Clone(c.connections[namespace])
}

func (c connectionsOf) Live(_ context.Context, namespace, name string) (*v1alpha1.Connection, error) {
	if connection := c.Get(namespace, name); connection != nil {
		return connection, nil
	}
	return nil, missing("connections", name)
}

func (connectionsOf) Create(context.Context, *v1alpha1.Connection) (*v1alpha1.Connection, error) {
	return nil, missing("connections", "new")
}

func (connectionsOf) Annotate(context.Context, *v1alpha1.Connection, map[string]string) error {
	return nil
}

func (connectionsOf) UseSecret(context.Context, *v1alpha1.Connection, string, map[string]string) (*v1alpha1.Connection, error) {
	return nil, missing("connections", "new")
}

func (c connectionsOf) DeleteFor(context.Context, *v1alpha1.Connection, string, time.Time) error {
	c.writes++
	return nil
}

// store signs URLs of a fictional store.
type store struct{}

func (store) PresignPut(_ context.Context, key, _ string, _ int64) (string, time.Time, error) {
	return "https://store.example/" + key + "?put", now.Add(time.Hour), nil
}

func (store) PresignGet(_ context.Context, key string, _ time.Duration) (string, error) {
	return "https://store.example/" + key + "?get", nil
}

func (store) BeginParts(context.Context, string, string) (string, error) { return "u-1", nil }

func (store) PresignParts(_ context.Context, key, upload string, _ int64) ([]string, time.Time, error) {
	if upload != "u-1" {
		return nil, time.Time{}, mediastore.ErrNotFound
	}
	return []string{"", "https://store.example/" + key + "?part"}, now.Add(time.Hour), nil
}

func (store) AbortParts(context.Context, string, string) error { return nil }

func (store) JoinParts(_ context.Context, _, upload string, _ int64) error {
	switch upload {
	case "u-1", "u-joined":
		return nil
	case "u-9":
		return mediastore.ErrNotFound
	default:
		return mediastore.ErrIncomplete
	}
}

type events struct{}

func (events) Write(context.Context, *corev1.ObjectReference, string, string) error { return nil }

type quota struct{}

func (quota) Read(context.Context, string, v1alpha1.UsageSpec) (*v1alpha1.Usage, error) {
	return &v1alpha1.Usage{}, nil
}

func (quota) Amend(_ context.Context, _ string, _ v1alpha1.UsageSpec, change func(*v1alpha1.Usage) error) error {
	return change(&v1alpha1.Usage{})
}
