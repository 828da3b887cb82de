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

// hasIdempotencyKey reports whether a post was created under an Idempotency-Key that outlives it: a
// request that is sent again creates nothing, although a person deleted what it created.
func (rs *records) hasIdempotencyKey(post *v1alpha1.Post) bool {
	return rs.o.Clock.Now().Before(posting.KeyExpiresAt(post))
}

// saveRequest keeps the request that created a post of which nothing was sent.
func (rs *records) saveRequest(ctx context.Context, team archive.Team, post *v1alpha1.Post) error {
	request := archive.Request{UID: post.UID, Fingerprint: post.Annotations[v1alpha1.RequestAnnotation]}
	return rs.breaker.execute(client.ObjectKeyFromObject(post), func() error { return rs.o.Records.Archive.PutRequest(ctx, team, post.Name, request) })
}
