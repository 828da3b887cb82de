// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/receiver"
	"github.com/herald-social/herald/posting/notify"
)

// examine returns the Notifier's state.
func (w *worker) examine(ctx context.Context) (state, error) {
	w.mu.Lock()
	n, gone := w.notifier, w.goneIn
	w.mu.Unlock()
	owned, err := w.reconciler.Owned(ctx, n.Namespace)
	switch {
	case err != nil:
		return state{}, err
	case !owned:
		return state{Summary: conditions.NoTeam(n.Namespace)}, nil
	case n.Spec.Suspend:
		return state{Summary: conditions.Summary{
			Ready: true, Reason: v1alpha1.ReasonSuspended, Progress: conditions.Settled,
			Message: "suspended by spec.suspend; notifications wait for at most a day",
		}}, nil
	case gone == n.Generation:
		return stuck(v1alpha1.ReasonReceiverGone, "the receiver reported that it no longer exists (410); change spec.url, or request to resend a notification"), nil
	}
	return w.reconciler.receivers.resolve(ctx, n)
}

// deliver sends a notification. An error means that the request was not sent.
func (w *worker) deliver(ctx context.Context, item *notify.Notification) (notify.Result, error) {
	payload, err := w.payload(ctx, item)
	if err != nil {
		return notify.Result{}, err
	}
	err = w.state.send(ctx, item.ID, payload)
	var refused *receiver.Error
	switch {
	case err == nil:
		return notify.Result{}, nil
	case errors.As(err, &refused):
		return notify.Result{Problem: refused.Message, Gone: refused.Gone, RetryAfter: refused.RetryAfter}, nil
	default:
		return notify.Result{}, err
	}
}

// payload returns the content of a notification, from the current state of its object.
func (w *worker) payload(ctx context.Context, item *notify.Notification) (*notify.Payload, error) {
	site := &notify.Site{URL: w.reconciler.SiteURL, Namespace: w.key.Namespace}
	get := func(object client.Object) (found bool, err error) {
		// Finished posts are not in the cache.
		err = w.reconciler.APIReader.Get(ctx, types.NamespacedName{Namespace: w.key.Namespace, Name: item.Name}, object)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("cannot read the object of a notification: %w", err)
		}
		return err == nil && object.GetUID() == item.UID, nil
	}
	var (
		post       v1alpha1.Post
		connection v1alpha1.Connection
		file       v1alpha1.Media
	)
	switch item.Kind {
	case notify.KindPost:
		if found, err := get(&post); err != nil || found {
			return notify.AboutPost(&item.Event, site, &post), err
		}
	case notify.KindConnection:
		if found, err := get(&connection); err != nil || found {
			return notify.AboutConnection(&item.Event, site, &connection), err
		}
	case notify.KindMedia:
		if found, err := get(&file); err != nil || found {
			return notify.AboutMedia(&item.Event, site, &file), err
		}
	}
	return notify.Deleted(&item.Event, site), nil
}
