// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/limits"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// maxConcurrentReads limits reads of large posts: decoding one takes several times its size in memory.
const maxConcurrentReads = 16

type inputReader struct {
	o           *Options
	states      *postStates
	limits      *limits.Limits
	suspensions *suspensionReader
	largeReads  chan struct{}
}

// fetchFull reads a post from the API server if the cache holds only part of it. It reports false if the post was
// deleted or replaced; the cache will deliver a new post of the same name.
func (r *inputReader) fetchFull(ctx context.Context, post *v1alpha1.Post) (there bool, err error) {
	if kubeclient.IsComplete(post) {
		return true, nil
	}
	select {
	case r.largeReads <- struct{}{}:
		defer func() { <-r.largeReads }()
	case <-ctx.Done():
		return false, fmt.Errorf("stopped before reading the post: %w", ctx.Err())
	}
	var live v1alpha1.Post
	err = r.o.APIReader.Get(ctx, client.ObjectKeyFromObject(post), &live)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot read the post: %w", err)
	case live.UID != post.UID || !kubeclient.IsComplete(&live):
		return false, nil
	}
	live.ManagedFields = nil
	*post = live
	return true, nil
}

// read reads the post's connections and files, the apps' rate limits, and the team's, namespace's and cluster's state.
func (r *inputReader) read(ctx context.Context, p *reconciliation) (err error) {
	if err := r.readForPreparation(ctx, p); err != nil {
		return err
	}
	if err := r.suspensions.read(ctx, p); err != nil {
		return err
	}
	return r.readRollback(ctx, p)
}

// readForPreparation reads what preparing a post requires.
func (r *inputReader) readForPreparation(ctx context.Context, p *reconciliation) (err error) {
	var connections []string
	for i := range p.Post.Spec.Targets {
		connections = append(connections, p.Post.Spec.Targets[i].ConnectionRef.Name)
	}
	if p.connections, err = readInputs[v1alpha1.Connection](ctx, r, p, kindConnection, connections); err != nil {
		return err
	}
	if p.media, err = readInputs[v1alpha1.Media](ctx, r, p, kindMedia, p.MediaNames()); err != nil {
		return err
	}
	if p.limits, err = r.limits.Read(ctx, p.key, p.connections, p.now); err != nil {
		return err
	}
	for _, platform := range p.limits.LimitedPlatforms() {
		r.states.subscribe(p.key, appInput(platform))
	}
	return r.readNamespace(ctx, p)
}

// readRollback reads the cluster's rollback state. It drops an archive response that is older than the detection of the
// rollback and therefore may be outdated.
func (r *inputReader) readRollback(ctx context.Context, p *reconciliation) error {
	if r.o.Rollback == nil {
		return nil
	}
	state, err := r.o.Rollback(ctx)
	if err != nil {
		return err //nolint:wrapcheck // the error names the operation
	}
	p.rollback = delivery.Rollback{UncertainSince: state.UnknownSince, Problem: state.Problem}
	if state.LastRollback != nil {
		p.rollback.DetectedAt = state.LastRollback.DetectedAt
	}
	if p.state.rollbackSeenAt.Before(p.rollback.DetectedAt) {
		p.state.earlier, p.state.rollbackSeenAt = nil, p.rollback.DetectedAt
	}
	return nil
}

// readNamespace reads who owns the namespace, and the team's setting for video conversion. For a post that is being
// deleted while its last call has no outcome, it also reads whether the namespace is being deleted.
func (r *inputReader) readNamespace(ctx context.Context, p *reconciliation) error {
	owned, err := r.o.Owned(ctx, p.key.Namespace)
	if err != nil {
		return err
	}
	p.unowned = !owned
	if r.o.TeamMedia != nil {
		decided, err := r.o.TeamMedia(ctx, p.key.Namespace)
		if err != nil {
			return err
		}
		p.converts = decided.Convert
	}
	open := slices.ContainsFunc(p.Post.Status.Targets, func(t v1alpha1.TargetStatus) bool { return attempt.IsOpen(t.Attempt) })
	if p.Post.DeletionTimestamp.IsZero() || !open {
		return nil
	}
	p.namespaceTerminating, err = kubeclient.IsNamespaceTerminating(ctx, r.o.APIReader, p.key.Namespace)
	return err //nolint:wrapcheck // the error names the operation
}

// fewInputs is the largest number of inputs of one kind that a post waits for by name. A post with more inputs, which
// may be thousands of files, is woken by any input of its namespace: keeping the names would take a megabyte.
const fewInputs = 200

// readInputs returns the existing inputs of the post, by name. It subscribes the post to each input before it reads it,
// so that no change between the two is missed.
func readInputs[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *inputReader, p *reconciliation, kind string, names []string) (map[string]P, error) {
	found := map[string]P{}
	many := len(names) > fewInputs
	if many {
		r.states.subscribe(p.key, input{kind, types.NamespacedName{Namespace: p.key.Namespace}})
	}
	for _, name := range names {
		if found[name] != nil {
			continue
		}
		key := types.NamespacedName{Namespace: p.key.Namespace, Name: name}
		if !many {
			r.states.subscribe(p.key, input{kind, key})
		}
		obj := P(new(T))
		err := r.o.Client.Get(ctx, key, obj)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot read %s %q: %w", kind, name, err)
		}
		if err == nil {
			found[name] = obj
		}
	}
	return found, nil
}
