// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
)

// What a counter counts: the values of the label social.herald.dev/quota.
const (
	KindXPosts       = "x-posts"
	KindTikTokDrafts = "tiktok-drafts"
)

// DefaultNamespace is the namespace of the counters; config/rbac names it too.
const DefaultNamespace = "herald-usage"

const (
	monthLayout = "2006-01"

	managedBy = "app.kubernetes.io/managed-by"
	herald    = "herald"
)

// mostTries is how often a counter is read again because another process wrote it
// in between. Each such write is progress of a request, and a full counter is not
// written any more, so that its limit bounds them.
const mostTries = 200

// Counter is one count.
type Counter struct {
	// Namespace is the team's.
	Namespace string
	// Kind is KindXPosts or KindTikTokDrafts.
	Kind string
	// Name is that of the ConfigMap.
	Name string
}

// newCounter names a counter after its team, its kind, and what it counts. The
// name of a namespace has no dot.
func newCounter(namespace, kind, of string) Counter {
	return Counter{Namespace: namespace, Kind: kind, Name: namespace + "." + kind + "." + of}
}

// XPosts returns the counter of a team's posts to X in the calendar month (UTC)
// of a time.
func XPosts(namespace string, at time.Time) Counter {
	return newCounter(namespace, KindXPosts, at.UTC().Format(monthLayout))
}

// TikTokDrafts returns the counter of the drafts that a team sent to the inbox of
// an account. A new connection of the same account continues it.
func TikTokDrafts(c *v1alpha1.Connection) Counter {
	sum := sha256.Sum256([]byte(c.Spec.AccountID))
	return newCounter(c.Namespace, KindTikTokDrafts, hex.EncodeToString(sum[:16]))
}

// Month returns the start of the month of a counter of posts to X; false for
// other counters.
func (b Counter) Month() (time.Time, bool) {
	if b.Kind != KindXPosts {
		return time.Time{}, false
	}
	month, err := time.Parse(monthLayout, b.Name[strings.LastIndexByte(b.Name, '.')+1:])
	return month, err == nil
}

// Store reads and writes counters. Its methods may be called from many goroutines
// and processes at once. Their errors are those of the Kubernetes API, wrapped.
type Store struct {
	maps      typedcorev1.ConfigMapInterface
	namespace string
	clock     clock.PassiveClock
}

// NewStore returns a store of the counters in a namespace, by default
// DefaultNamespace. The client must not read from a cache.
func NewStore(maps typedcorev1.ConfigMapsGetter, namespace string, now clock.PassiveClock) *Store {
	if namespace == "" {
		namespace = DefaultNamespace
	}
	return &Store{maps: maps.ConfigMaps(namespace), namespace: namespace, clock: now}
}

// Take grants a reservation as far as the limit allows, and stores it.
func (s *Store) Take(ctx context.Context, b Counter, w *Reservation, limit Limit) (Answer, error) {
	var answer Answer
	err := s.Amend(ctx, b, func(p Entries) (bool, error) {
		var changed bool
		answer, changed = p.take(w, limit, s.clock.Now())
		return changed, nil
	})
	return answer, err
}

// Undo restores what a post had before Take granted a reservation, unless another
// request has reserved for the same post since, or its delivery has begun: then
// the Team controller gives back what the post does not need.
func (s *Store) Undo(ctx context.Context, b Counter, w *Reservation, granted Answer, limit Limit) error {
	return s.Amend(ctx, b, func(p Entries) (bool, error) { return p.undo(w, granted, limit), nil })
}

// Check returns what Take would answer now, and takes nothing.
func (s *Store) Check(ctx context.Context, b Counter, w *Reservation, limit Limit) (Answer, error) {
	p, err := s.Entries(ctx, b)
	if err != nil {
		return Answer{}, err
	}
	answer, _ := p.take(w, limit, s.clock.Now())
	return answer, nil
}

// Return gives back what the targets of a post took beyond what keep returns. The
// items of another post of that name stay, and so do those that the delivery of a
// post has taken if the UID is not given.
func (s *Store) Return(ctx context.Context, b Counter, post string, uid types.UID, keep func(target int) int) error {
	return s.Amend(ctx, b, func(p Entries) (bool, error) {
		e := p[post]
		if e == nil || e.UID != "" && e.UID != uid {
			return false, nil
		}
		return e.Reduce(keep), nil
	})
}

// Amend changes a counter. It calls change again, with the entries as they are
// then, if another process wrote the counter in between; change reports whether
// there is anything to store.
func (s *Store) Amend(ctx context.Context, b Counter, change func(Entries) (bool, error)) error {
	for range mostTries {
		stored, err := s.get(ctx, b)
		if err != nil {
			return err
		}
		p, err := decode(stored)
		if err != nil {
			return err
		}
		if changed, err := change(p); !changed || err != nil {
			return err
		}
		err = s.put(ctx, b, stored, p)
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && (stored.ResourceVersion == "" || !apierrors.IsNotFound(err)) {
			return fmt.Errorf("cannot write the count in ConfigMap %s/%s: %w", s.namespace, b.Name, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("cannot write the count in ConfigMap %s/%s: other processes changed it each time; try again", s.namespace, b.Name)
}

// Entries reads a counter; one that does not exist is empty.
func (s *Store) Entries(ctx context.Context, b Counter) (Entries, error) {
	stored, err := s.get(ctx, b)
	if err != nil {
		return nil, err
	}
	return decode(stored)
}

// Counters lists the counters of a team, by its namespace.
func (s *Store) Counters(ctx context.Context, namespace string) ([]Counter, error) {
	found, err := s.maps.List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{v1alpha1.QuotaOfLabel: namespace}.String() + "," + v1alpha1.QuotaLabel,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list the counts of namespace %q: %w", namespace, err)
	}
	counters := make([]Counter, 0, len(found.Items))
	for i := range found.Items {
		item := &found.Items[i]
		counters = append(counters, Counter{Namespace: namespace, Name: item.Name, Kind: item.Labels[v1alpha1.QuotaLabel]})
	}
	return counters, nil
}

// Drop deletes a counter if unneeded reports true for its entries, or is nil. A
// process that writes the counter at the same time wins.
func (s *Store) Drop(ctx context.Context, b Counter, unneeded func(Entries) bool) error {
	stored, err := s.get(ctx, b)
	if err != nil || stored.ResourceVersion == "" {
		return err
	}
	if unneeded != nil {
		if p, err := decode(stored); err != nil || !unneeded(p) {
			return err
		}
	}
	err = s.maps.Delete(ctx, b.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &stored.UID, ResourceVersion: &stored.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("cannot delete the count in ConfigMap %s/%s: %w", s.namespace, b.Name, err)
	}
	return nil
}

// get reads the object of a counter; one without a resourceVersion does not exist.
func (s *Store) get(ctx context.Context, b Counter) (*corev1.ConfigMap, error) {
	stored, err := s.maps.Get(ctx, b.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &corev1.ConfigMap{}, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read the count in ConfigMap %s/%s: %w", s.namespace, b.Name, err)
	default:
		return stored, nil
	}
}

// put writes entries under the resourceVersion that they were read with.
func (s *Store) put(ctx context.Context, b Counter, stored *corev1.ConfigMap, p Entries) error {
	data, err := encode(p)
	if err != nil {
		return err
	}
	next := stored.DeepCopy()
	next.Data, next.BinaryData = data, nil
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	maps.Copy(next.Labels, map[string]string{managedBy: herald, v1alpha1.QuotaLabel: b.Kind, v1alpha1.QuotaOfLabel: b.Namespace})
	if stored.ResourceVersion != "" {
		if equality.Semantic.DeepEqual(stored, next) {
			return nil
		}
		_, err = s.maps.Update(ctx, next, metav1.UpdateOptions{})
		return err
	}
	next.Namespace, next.Name = s.namespace, b.Name
	_, err = s.maps.Create(ctx, next, metav1.CreateOptions{})
	return err
}

// decode reads entries. One that cannot be read must not count as nothing.
func decode(stored *corev1.ConfigMap) (Entries, error) {
	p := make(Entries, len(stored.Data))
	var errs []error
	for post, text := range stored.Data {
		e := &Entry{}
		if err := json.Unmarshal([]byte(text), e); err != nil {
			errs = append(errs, fmt.Errorf("cannot read the count in ConfigMap %s/%s: data[%q] was not written by Herald; remove it: %w",
				stored.Namespace, stored.Name, post, err))
			continue
		}
		p[post] = e
	}
	return p, errors.Join(errs...)
}

func encode(p Entries) (map[string]string, error) {
	data := make(map[string]string, len(p))
	for post, e := range p {
		if e.empty() {
			continue
		}
		text, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encode a count: %w", err)
		}
		data[post] = string(text)
	}
	return data, nil
}
