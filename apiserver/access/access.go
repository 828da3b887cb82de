// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access authenticates and authorizes callers: it finds a token's API key in a cache, identifies users of the
// web application, and checks their permissions in a team's namespace. It sends SubjectAccessReviews to Kubernetes:
// roles and their bindings are the only source of a person's permissions.
package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	// answerLife is the TTL of a cached answer: a revoked permission remains usable for at most this long.
	answerLife = 5 * time.Second
	// teamsLife is the TTL of a person's cached list of teams, which only affects the team menu.
	teamsLife = 20 * time.Second
	// maxAnswers and maxLists limit the two caches. An answer takes about 200 bytes, a list 8 bytes per team.
	maxAnswers = 20_000
	maxLists   = 1_000
	// maxConcurrentReviews limits the concurrent reviews for one list.
	maxConcurrentReviews = 32
	// reviewTimeout is the timeout of one review and listTimeout that of a whole list. Callers with the same key share a
	// review, so it continues when one request is canceled.
	reviewTimeout = 5 * time.Second
	listTimeout   = 20 * time.Second
)

// Reviews creates SubjectAccessReviews. The typed client of authorization.k8s.io/v1 implements it.
type Reviews interface {
	Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, options metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// Checker checks permissions and caches the answers. It is safe for concurrent use.
type Checker struct {
	reviews Reviews
	teams   func() []*v1alpha1.Team

	answers *cache.LRUExpireCache
	lists   *cache.LRUExpireCache
	flights singleflight.Group
}

// New returns a Checker. teams lists the teams of this installation, in any order.
func New(reviews Reviews, teams func() []*v1alpha1.Team, clk clock.PassiveClock) *Checker {
	return &Checker{
		reviews: reviews, teams: teams,
		answers: cache.NewLRUExpireCacheWithClock(maxAnswers, clk), lists: cache.NewLRUExpireCacheWithClock(maxLists, clk),
	}
}

// reviewKey identifies a review. The hash of its JSON is the cache key.
type reviewKey struct {
	User      string   `json:"u"`
	Groups    []string `json:"g"`
	Namespace string   `json:"ns"`
	Verb      string   `json:"v"`
	Resource  string   `json:"r"`
	Name      string   `json:"n"`
}

// May reports whether the person may do something with one of Herald's resources in a namespace. verb is a Kubernetes
// verb, such as get, list, create, patch or delete. resource is the plural, with a subresource after a slash, or with the
// group of another API after a dot, such as rolebindings.rbac.authorization.k8s.io. A name restricts the check to one object; the namespace "" covers all namespaces. If there is an error, the answer is
// unknown and May returns false.
func (c *Checker) May(ctx context.Context, p Person, namespace, verb, resource string, name ...string) (bool, error) {
	q := reviewKey{User: p.Name, Groups: p.Groups, Namespace: namespace, Verb: verb, Resource: resource, Name: strings.Join(name, "")}
	if p.Name == "" {
		return false, errors.New("cannot check the rights of a person without a name")
	}
	key := keyOf(q)
	answer, err := c.once(ctx, c.answers, key, answerLife, reviewTimeout, func(ctx context.Context) (any, error) { return c.review(ctx, q) })
	allowed, _ := answer.(bool)
	return allowed && err == nil, err
}

// Teams returns the teams whose posts the person may list, sorted by name. If there is an error, it returns none.
func (c *Checker) Teams(ctx context.Context, p Person) ([]*v1alpha1.Team, error) {
	if p.Name == "" {
		return nil, errors.New("cannot list the teams of a person without a name")
	}
	key := "teams/" + keyOf(reviewKey{User: p.Name, Groups: p.Groups})
	list, err := c.once(ctx, c.lists, key, teamsLife, listTimeout, func(ctx context.Context) (any, error) { return c.list(ctx, p) })
	if err != nil {
		return nil, err
	}
	teams, _ := list.([]*v1alpha1.Team)
	return teams, nil
}

// list checks the teams concurrently. A permission for all namespaces takes only one review.
func (c *Checker) list(ctx context.Context, p Person) ([]*v1alpha1.Team, error) {
	all := c.teams()
	everywhere, err := c.May(ctx, p, metav1.NamespaceAll, "list", "posts")
	if err != nil {
		return nil, err
	}
	allowed := make([]bool, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentReviews)
	for i, team := range all {
		if allowed[i] = everywhere; everywhere {
			continue
		}
		group.Go(func() (err error) {
			allowed[i], err = c.May(ctx, p, team.Spec.Namespace, "list", "posts")
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var theirs []*v1alpha1.Team
	for i, team := range all {
		if allowed[i] {
			theirs = append(theirs, team)
		}
	}
	slices.SortFunc(theirs, func(a, b *v1alpha1.Team) int { return cmp.Compare(a.Name, b.Name) })
	return theirs, nil
}

// once returns the cached value of the key. If there is none, it makes one call for all concurrent callers and caches
// the result for life. The call continues if a caller is canceled, and ends after timeout.
func (c *Checker) once(ctx context.Context, cached *cache.LRUExpireCache, key string, life, timeout time.Duration, call func(context.Context) (any, error)) (any, error) {
	if value, found := cached.Get(key); found {
		return value, nil
	}
	shared := c.flights.DoChan(key, func() (any, error) {
		if value, found := cached.Get(key); found { // another call has returned since
			return value, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		value, err := call(ctx)
		if err == nil {
			cached.Add(key, value, life)
		}
		return value, err
	})
	select {
	case result := <-shared:
		return result.Val, result.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Checker) review(ctx context.Context, q reviewKey) (bool, error) {
	of := v1alpha1.GroupVersion
	resource, subresource, _ := strings.Cut(q.Resource, "/")
	if plural, group, other := strings.Cut(resource, "."); other {
		resource, of.Group, of.Version = plural, group, "*"
	}
	answer, err := c.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: q.User, Groups: q.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: q.Namespace, Verb: q.Verb, Group: of.Group, Version: of.Version,
			Resource: resource, Subresource: subresource, Name: q.Name,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("cannot check whether %s may %s %s in namespace %q: %w", q.User, q.Verb, q.Resource, q.Namespace, err)
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}

// keyOf hashes the key, so the length of the result does not depend on the person's groups.
func keyOf(q reviewKey) string {
	text, _ := json.Marshal(q) // strings always marshal
	sum := sha256.Sum256(text)
	return string(sum[:])
}
