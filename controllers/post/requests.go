// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/posting"
)

// hasIdempotencyKey reports whether a post was created under an Idempotency-Key that is still valid. A repeated request
// with that key must create nothing, even if a person has deleted the post.
func (rs *records) hasIdempotencyKey(post *v1alpha1.Post) bool {
	return rs.o.Clock.Now().Before(posting.KeyExpiresAt(post))
}

// saveRequest stores the request that created a post, if nothing was sent for the post.
func (rs *records) saveRequest(ctx context.Context, team archive.Team, post *v1alpha1.Post) error {
	request := archive.Request{UID: post.UID, Fingerprint: post.Annotations[v1alpha1.RequestAnnotation]}
	return rs.breaker.execute(client.ObjectKeyFromObject(post), func() error { return rs.o.Records.Archive.PutRequest(ctx, team, post.Name, request) })
}
