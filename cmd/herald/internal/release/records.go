// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/record"
)

// unrecorded is the error for a post that keeps its finalizer because it may have no record yet.
type unrecorded struct{ until time.Time }

func (u *unrecorded) Error() string {
	return fmt.Sprintf("it is being deleted, part of it was or may have been sent, and it is unknown whether its record is in the bucket: "+
		"without the finalizer it is deleted, and is published again if it is created again. Start the manager again and wait until the post is gone; "+
		"or run this again after %s, when the manager would give up too; or run it with --without-records, which releases it now", u.until.UTC().Format(time.RFC3339))
}

// checkRecorded returns an error if a post must keep its finalizer. Without the finalizer, a post that is being deleted
// disappears, and its record can no longer be written. The command cannot access the bucket, so it keeps the finalizer
// for as long as the manager would: for at most an hour (record.WriteTimeout), and not in a terminating namespace.
func (r *run) checkRecorded(ctx context.Context, k kind, m *metav1.PartialObjectMetadata) error {
	if k.resource != posts || r.WithoutRecords || m.DeletionTimestamp.IsZero() {
		return nil
	}
	until := m.DeletionTimestamp.Add(record.WriteTimeout)
	if !r.Clock.Now().Before(until) {
		return nil
	}
	if kept, err := r.hasRecords(m.Namespace); err != nil || !kept {
		return err
	}
	if ends, err := r.isTerminating(ctx, m.Namespace); err != nil || ends {
		return err
	}
	whole, err := r.dynamic.Resource(v1alpha1.GroupVersion.WithResource(posts)).Namespace(m.Namespace).Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	var post v1alpha1.Post
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, &post); err != nil {
		return fmt.Errorf("this program cannot read the post; it has to be at least as new as the installed Herald: %w", err)
	}
	if record.Required(&post) || r.Clock.Now().Before(posting.KeyExpiresAt(&post)) {
		return &unrecorded{until}
	}
	return nil
}

func (r *run) recordGone(k kind, m *metav1.PartialObjectMetadata) {
	if k.resource != posts || m.DeletionTimestamp.IsZero() {
		return
	}
	if kept, err := r.hasRecords(m.Namespace); err == nil && !kept {
		return // The records of a deleted Team are deleted with it.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.goneNames = append(r.goneNames, nameOf(m))
}

func (r *run) reportGone() error {
	if len(r.goneNames) == 0 {
		return nil
	}
	slices.Sort(r.goneNames)
	names := strings.Join(r.goneNames[:min(len(r.goneNames), maxNamed)], ", ")
	if more := len(r.goneNames) - maxNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	_, err := fmt.Fprintf(r.Out, "%d posts that were being deleted are gone: %s. Anything published in the last minute before the manager stopped, "+
		"or while the bucket was unavailable, has no record: if such a post is created again, it is published again\n", len(r.goneNames), names)
	return err
}

// hasRecords reports whether the posts in a namespace have records: a Team owns the namespace and is not being deleted.
func (r *run) hasRecords(namespace string) (bool, error) {
	owned, err := r.owned()
	return owned[namespace], err
}

// readOwned returns the namespaces of the Teams that are not being deleted.
func (r *run) readOwned(ctx context.Context) (map[string]bool, error) {
	owned := map[string]bool{}
	err := r.eachTeam(ctx, func(team *unstructured.Unstructured, namespace string) {
		if team.GetDeletionTimestamp() == nil {
			owned[namespace] = true
		}
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list teams to check whose posts leave records; run this again: %w", err)
	}
	return owned, nil
}

// isTerminating reports whether a namespace is being deleted. It caches the first result.
func (r *run) isTerminating(ctx context.Context, namespace string) (bool, error) {
	r.mu.Lock()
	ends, known := r.terminating[namespace]
	r.mu.Unlock()
	if known {
		return ends, nil
	}
	found, err := r.metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		ends = true
	case err != nil:
		return false, fmt.Errorf("cannot check whether namespace %q is being deleted too: %w", namespace, err)
	default:
		ends = !found.DeletionTimestamp.IsZero()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.terminating[namespace] = ends
	return ends, nil
}
