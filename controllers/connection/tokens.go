// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
)

// Tokens hands out the tokens of a cache in the form that platforms take.
type Tokens struct {
	Cache *credentials.Cache
}

// Token returns the connection's current token. Errors are *credentials.Error,
// or those of ctx.
func (t Tokens) Token(ctx context.Context, conn *v1alpha1.Connection) (platforms.Token, error) {
	token, err := t.Cache.Token(ctx, conn)
	return platforms.Token(token), err
}

// Forget drops the token of a connection, after the platform refused it.
func (t Tokens) Forget(conn *v1alpha1.Connection) { t.Cache.Forget(conn) }
