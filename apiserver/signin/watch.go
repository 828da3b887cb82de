// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"time"
)

const (
	// probeInterval is the interval between fetches of the provider's configuration, and probeRetryInterval the
	// interval after a failure.
	probeInterval      = 5 * time.Minute
	probeRetryInterval = time.Minute
)

// Watch fetches the provider's configuration immediately and then periodically until ctx is done, so that Ready detects
// an unavailable provider before a user does. after is a clock's After. Without a provider Watch does nothing.
func (h *Handlers) Watch(ctx context.Context, after func(time.Duration) <-chan time.Time) {
	if h.provider == nil {
		return
	}
	away := false
	for ctx.Err() == nil {
		_, err := h.provider.refresh(ctx)
		pause := probeInterval
		switch {
		case err != nil:
			pause = probeRetryInterval
			if !away && ctx.Err() == nil {
				h.Log.WarnContext(ctx, "People cannot sign in: the OpenID Connect provider does not respond", "issuer", h.OIDC.IssuerURL, "error", err)
			}
		case away:
			h.Log.InfoContext(ctx, "The OpenID Connect provider responds again", "issuer", h.OIDC.IssuerURL)
		}
		away = err != nil
		select {
		case <-after(pause):
		case <-ctx.Done():
		}
	}
}
