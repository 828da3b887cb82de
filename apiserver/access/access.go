// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access says what a person may do in a team's namespace. It asks Kubernetes by
// SubjectAccessReview: roles and their bindings are the only rights that there are.
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
	"github.com/herald-social/herald/apiserver/person"
)

const (
	// answerLife is how long an answer is used again: a right that is taken away is gone
	// after so long.
	answerLife = 5 * time.Second
	// teamsLife is how long the list of a person's teams is used again. It only says what is
	// offered; each page asks for its own right.
	teamsLife = 20 * time.Second
	// maxAnswers and maxLists bound what is kept: about 200 bytes an answer, and 8 bytes for
	// each team of a list.
	maxAnswers = 20_000
	maxLists   = 1_000
	// atOnce is how many questions of one list are under way at once.
	atOnce = 32
	// patience bounds one question, and listPatience all of a list. Those who wait for the
	// same answer share the question, so it outlives a request that is called off.
	patience     = 5 * time.Second
	listPatience = 20 * time.Second
)

// Reviews asks the Kubernetes API what a user may do. The typed client of
// authorization.k8s.io/v1 is one.
type Reviews interface {
	Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, options metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// Checker answers what people may do. It is safe for concurrent use.
type Checker struct {
	reviews Reviews
	teams   func() []*v1alpha1.Team

	answers *cache.LRUExpireCache
	lists   *cache.LRUExpireCache
	flights singleflight.Group
}

// New returns a Checker. Teams lists the teams that this installation serves, in no order.
func New(reviews Reviews, teams func() []*v1alpha1.Team, clk clock.PassiveClock) *Checker {
	return &Checker{
		reviews: reviews, teams: teams,
		answers: cache.NewLRUExpireCacheWithClock(maxAnswers, clk), lists: cache.NewLRUExpireCacheWithClock(maxLists, clk),
	}
}

// reviewKey is what is asked about a person. Its JSON is the key of the answer.
type reviewKey struct {
	User      string   `json:"u"`
	Groups    []string `json:"g"`
	Namespace string   `json:"ns"`
	Verb      string   `json:"v"`
	Resource  string   `json:"r"`
	Name      string   `json:"n"`
}

// May reports whether the person may do something with a resource of Herald in a namespace:
// the verb is Kubernetes', such as get, list, create, patch or delete; the resource is its
// plural, with a subresource after a slash; a name asks about that one object. The namespace
// "" asks about all of them. An error means that it is not known, and allows nothing.
func (c *Checker) May(ctx context.Context, p person.Person, namespace, verb, resource string, name ...string) (bool, error) {
	q := reviewKey{User: p.Name, Groups: p.Groups, Namespace: namespace, Verb: verb, Resource: resource, Name: strings.Join(name, "")}
	if p.Name == "" {
		return false, errors.New("cannot tell what a person without a name may do")
	}
	key := keyOf(q)
	if answer, found := c.answers.Get(key); found {
		allowed, _ := answer.(bool)
		return allowed, nil
	}
	answer, err := c.once(ctx, key, patience, func(ctx context.Context) (any, error) {
		allowed, err := c.review(ctx, q)
		if err == nil {
			c.answers.Add(key, allowed, answerLife)
		}
		return allowed, err
	})
	allowed, _ := answer.(bool)
	return allowed && err == nil, err
}

// Teams returns the teams whose posts the person may list, by their names. An error means
// that it is not known; no team is returned then.
func (c *Checker) Teams(ctx context.Context, p person.Person) ([]*v1alpha1.Team, error) {
	if p.Name == "" {
		return nil, errors.New("cannot tell the teams of a person without a name")
	}
	key := "teams/" + keyOf(reviewKey{User: p.Name, Groups: p.Groups})
	if list, found := c.lists.Get(key); found {
		teams, _ := list.([]*v1alpha1.Team)
		return teams, nil
	}
	list, err := c.once(ctx, key, listPatience, func(ctx context.Context) (any, error) {
		teams, err := c.list(ctx, p)
		if err == nil {
			c.lists.Add(key, teams, teamsLife)
		}
		return teams, err
	})
	if err != nil {
		return nil, err
	}
	teams, _ := list.([]*v1alpha1.Team)
	return teams, nil
}

// list asks about each team, side by side. A person with a right to all namespaces costs one
// question.
func (c *Checker) list(ctx context.Context, p person.Person) ([]*v1alpha1.Team, error) {
	all := c.teams()
	everywhere, err := c.May(ctx, p, metav1.NamespaceAll, "list", "posts")
	if err != nil {
		return nil, err
	}
	allowed := make([]bool, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
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

// once lets callers with the same key share one call. It ends with neither of them.
func (c *Checker) once(ctx context.Context, key string, within time.Duration, call func(context.Context) (any, error)) (any, error) {
	shared := c.flights.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		return call(ctx)
	})
	select {
	case result := <-shared:
		return result.Val, result.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// review puts a question to the Kubernetes API.
func (c *Checker) review(ctx context.Context, q reviewKey) (bool, error) {
	resource, subresource, _ := strings.Cut(q.Resource, "/")
	answer, err := c.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: q.User, Groups: q.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: q.Namespace, Verb: q.Verb, Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version,
			Resource: resource, Subresource: subresource, Name: q.Name,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("cannot ask Kubernetes whether %s may %s %s in namespace %q: %w", q.User, q.Verb, q.Resource, q.Namespace, err)
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}

// keyOf is short whatever groups a person has.
func keyOf(q reviewKey) string {
	text, _ := json.Marshal(q) // strings are never refused
	sum := sha256.Sum256(text)
	return string(sum[:])
}
