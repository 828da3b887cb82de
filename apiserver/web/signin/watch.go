// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"time"
)

const (
	// probeInterval is how often the provider is asked about itself, and askAgain how soon after it
	// did not answer.
	probeInterval      = 5 * time.Minute
	probeRetryInterval = time.Minute
)

// Watch asks the provider about itself, at once and again and again until ctx ends, so that
// Ready tells of one that is away before a person finds out. After is that of a clock.
// Without a provider there is nothing to watch.
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
				h.Log.WarnContext(ctx, "People cannot sign in: the OpenID Connect provider does not answer", "issuer", h.OIDC.IssuerURL, "error", err)
			}
		case away:
			h.Log.InfoContext(ctx, "The OpenID Connect provider answers again", "issuer", h.OIDC.IssuerURL)
		}
		away = err != nil
		select {
		case <-after(pause):
		case <-ctx.Done():
		}
	}
}
